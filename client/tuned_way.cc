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

TunedWay::Chains ChainsOf(const compiler::CascadeChoice& choice, compiler::CascadeRun asked) {
  using compiler::CascadeRun;
  if (asked != CascadeRun::kAuto) return {.run = asked, .apart = {}};
  return {.run = choice.joined > 0 ? CascadeRun::kOn : CascadeRun::kOff,
          .apart = TasksOf(choice.apart)};
}

}  // namespace

TunedWay TunedWay::Of(const compiler::ModelWays& ways, compiler::BatchRun batch,
                      compiler::CascadeRun cascades) {
  TunedWay way{.batch = batch,
               .together = {},
               .chains = ChainsOf(ways.steps.cascades, cascades),
               .other_chains = ChainsOf(ways.other_cascades, cascades)};
  if (batch == compiler::BatchRun::kAuto && !ways.steps.batch.together.empty()) {
    way.together = TasksOf(ways.steps.batch.together);
    way.batch = ways.steps.images > 1 ? compiler::BatchRun::kEach : compiler::BatchRun::kTogether;
  }
  return way;
}

}  // namespace hone::client
