#include "ir/hash.h"

#include "ir/text.h"
#include "ir/workload_builder.h"

namespace hone::ir {

Hash128 StructuralHash(const Workload& workload) {
  return HashBytes(ToText(Canonicalise(workload).workload));
}

}  // namespace hone::ir
