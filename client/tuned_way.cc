#include "client/tuned_way.h"

#include <string>

namespace hone::client {
namespace {

TunedWay::Tasks TasksOf(const std::vector<std::pair<std::string, int>>& counted) {
  TunedWay::Tasks tasks;
  for (const auto& [hash, count] : counted)
    tasks.emplace_back(Hash128::FromHex(hash).value_or(Hash128{}), count);
  return tasks;
}

}  // namespace

TunedWay TunedWay::Of(const compiler::ModelSteps& steps, compiler::BatchRun batch,
                      compiler::CascadeRun cascades) {
  TunedWay way{.batch = batch, .cascades = cascades};
  if (batch == compiler::BatchRun::kAuto && !steps.batch.together.empty()) {
    way.together = TasksOf(steps.batch.together);
    way.batch = steps.images > 1 ? compiler::BatchRun::kEach : compiler::BatchRun::kTogether;
  }
  if (cascades == compiler::CascadeRun::kAuto) {
    way.apart = TasksOf(steps.cascades.apart);
    way.cascades =
        steps.cascades.joined > 0 ? compiler::CascadeRun::kOn : compiler::CascadeRun::kOff;
  }
  return way;
}

}  // namespace hone::client
