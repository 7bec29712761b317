#include "measure/kind_runner.h"

#include "measure/cpu/cpu_runner.h"

namespace hone::measure {

ir::PerKind<KindRunner>& RunnersOfKinds() {
  static ir::PerKind<KindRunner> kinds = {{"cpu", &CpuRunner()}};
  return kinds;
}

std::string_view KindIn(std::string_view text) { return text.substr(0, text.find(':')); }

Result<const KindRunner*> RunnerOf(std::string_view text) {
  const KindRunner* const runner = RunnersOfKinds().Find(KindIn(text));
  if (runner != nullptr) return runner;
  return Status(StatusCode::kFailedPrecondition,
                "this program runs no candidates on a " + std::string(KindIn(text)));
}

}  // namespace hone::measure
