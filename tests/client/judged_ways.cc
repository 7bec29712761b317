#include "tests/client/judged_ways.h"

#include <utility>

#include "base/versions.h"
#include "db/log_file.h"
#include "tests/client/small_tuning.h"

namespace hone::client::testing {

using nlohmann::json;

void JudgedWays::SetUp() { ASSERT_TRUE(db::OpenLog(log_, {.mode = db::OpenMode::kWrite}).ok()); }

json JudgedWays::Compiled(const std::string& model, const std::string& target,
                          std::vector<std::string> more) const {
  std::vector<std::string> words = {
      "compile", model, "-o", folder_.Path("m.hone"), "--db", log_, "--json", "--target", target};
  words.insert(words.end(), more.begin(), more.end());
  return Parse(RunHone(words));
}

Hash128 JudgedWays::ModelOf(const json& compiled) {
  std::vector<std::pair<Hash128, int64_t>> tasks;
  for (const json& kernel : compiled["kernels"]) {
    tasks.emplace_back(*Hash128::FromHex(kernel["workload"].get<std::string>()),
                       kernel["count"].get<int64_t>());
  }
  return db::ModelHash(std::move(tasks));
}

void JudgedWays::Write(db::ModelVerdict verdict) const {
  verdict.device_class = kClass;
  verdict.measurement_policy = kCpuVersions.measurement_policy;
  verdict.default_ns = 3e6;
  verdict.tuned_ns = 3e6 / verdict.ratio;
  verdict.ratio_low = verdict.ratio - 0.02;
  verdict.ratio_high = verdict.ratio + 0.02;
  verdict.rounds = 9;
  verdict.session = {7, 7};
  auto log = db::OpenLog(log_, {.mode = db::OpenMode::kWrite});
  ASSERT_TRUE(log.ok()) << log.status();
  db::Batch batch;
  batch.sessions.push_back({verdict.session, "{}", 0, "{}", 1});
  batch.events.push_back(db::EventOf(verdict));
  const auto appended = (*log)->Append(batch);
  ASSERT_TRUE(appended.ok()) << appended.status();
}

void JudgedWays::Tune(const std::string& what, int threads, json* found, json* compiled) const {
  const std::string count = std::to_string(threads);
  const ProgramRun run = RunHone({"tune", model_, "--db", log_, "--seconds", "25", "--trials", "4",
                                  "--threads", count, "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  *found = Parse(run)["model"][what];
  ASSERT_TRUE(found->is_object()) << run.out;
  *compiled = Parse(RunHone({"compile", model_, "-o", folder_.Path("m.hone"), "--db", log_,
                             "--json", "--threads", count}))[what];
}

}  // namespace hone::client::testing
