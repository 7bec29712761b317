#include "ir/narrow_target.h"

#include <algorithm>

#include "ir/kind_facts.h"

namespace hone::ir {

Target NarrowedTo(const Target& target, const Workload& workload) {
  return NarrowedTo(target, std::vector<const Workload*>{&workload});
}

Target NarrowedTo(const Target& target, const std::vector<const Workload*>& workloads) {
  return Narrowed(target, [&](DType dtype) {
    return std::ranges::any_of(workloads, [&](const Workload* workload) {
      return std::ranges::any_of(workload->tensors,
                                 [&](const Tensor& tensor) { return tensor.dtype == dtype; });
    });
  });
}

}  // namespace hone::ir
