#include <sched.h>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"

#include "base/file.h"
#include "tests/farm/tuned_farm.h"

// A whole farm on one machine: a worker beside honed on the first core, two that share the second
// one through its lock, two models tuned at once, one worker killed half way; what builds read
// afterwards is the same from the server, a snapshot and the log.
namespace hone::farm {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr size_t kHalf = 45;  // of the trials of both

/// The first two cores of this process; the same one twice where it has only one.
std::pair<int, int> TwoCores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  EXPECT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE && cores.size() < 2; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return {cores.front(), cores.back()};
}

std::vector<std::string> On(int core, std::vector<std::string> argv) {
  argv.insert(argv.begin(), {"/usr/bin/taskset", "-c", std::to_string(core)});
  return argv;
}

struct TunedModel {
  std::string name;
  int trials = 0;
  std::unique_ptr<Daemon> client;
};

/// Whether the first worker builds for the two others, or each builds for itself.
class EndToEndTest : public TunedFarm, public ::testing::WithParamInterface<bool> {
 protected:
  EndToEndTest() : TunedFarm({"w0", "w1", "w2"}) {
    for (TunedModel& model : models_) {
      const Ran zoo = RunToEnd({Program("hone"), "zoo", model.name, "-o", PathOf(model.name)});
      EXPECT_EQ(zoo.code, 0) << zoo.err;
      model.client = std::make_unique<Daemon>(
          model.name,
          Hone({"tune", PathOf(model.name), "--target", "cpu:avx2", "--threads", "1", "--trials",
                std::to_string(model.trials)}),
          farm_.Path(model.name + ".log"));
    }
  }

  std::string PathOf(const std::string& model) const { return farm_.Path(model + ".onnx"); }
  std::vector<std::string> Worker(const std::string& name, int core, const std::string& device,
                                  const std::string& role) const {
    std::vector<std::string> argv = On(core, farm_.WorkerArgv(name));
    argv.insert(argv.end(), {"--device", device});
    if (GetParam()) argv.insert(argv.end(), {"--role", role});
    return argv;
  }
  size_t Answers(const std::string& worker) const {
    size_t answers = 0;
    for (const auto& words : LinesOf(farm_.Journal(worker))) answers += words[0] == "ack";
    return answers;
  }
  std::string DeviceClass() const {
    const Ran ran = RunToEnd(Hone({"device", "list", "--json"}));
    EXPECT_EQ(ran.code, 0) << ran.err;
    std::set<std::string> classes;
    const auto devices = nlohmann::json::parse(ran.out).at("devices");
    for (const auto& device : devices) classes.insert(device.at("device_class"));
    EXPECT_EQ(classes.size(), 1u) << ran.out;
    return *classes.begin();
  }
  /// What `hone compile --json` says; the package goes to `path`.
  nlohmann::json CompileTo(const std::string& model, const std::string& path,
                           const std::vector<std::string>& from) const {
    std::vector<std::string> argv = {Program("hone"), "compile",  PathOf(model), "-o", path,
                                     "--target",      "cpu:avx2", "--threads",   "1",  "--json",
                                     "--device-class"};
    argv.push_back(device_class_);
    argv.insert(argv.end(), from.begin(), from.end());
    const Ran ran = RunToEnd(argv);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return nlohmann::json::parse(ran.out);
  }
  /// The same bytes from everywhere; exact where it was tuned.
  void CheckBuilds(const std::string& model, const std::set<std::string>& measured) const;
  /// Workloads of which the snapshot has a record.
  std::set<std::string> Measured() const;

  std::vector<TunedModel> models_ = [] {
    std::vector<TunedModel> models(2);
    models[0] = {.name = "mlp", .trials = 40, .client = nullptr};
    models[1] = {.name = "squeezenet", .trials = 60, .client = nullptr};
    return models;
  }();
  std::string device_class_;
};

std::set<std::string> EndToEndTest::Measured() const {
  std::set<std::string> measured;
  const auto log = db::OpenLog(farm_.Path("snapshot.db"), {.mode = db::OpenMode::kRead});
  EXPECT_TRUE(log.ok()) << log.status();
  if (!log.ok()) return measured;
  EXPECT_TRUE((*log)
                  ->ScanRecords({},
                                [&](const db::RankedRecord& record) {
                                  measured.insert(record.record.key.workload.ToHex());
                                  return absl::OkStatus();
                                })
                  .ok());
  return measured;
}

void EndToEndTest::CheckBuilds(const std::string& model,
                               const std::set<std::string>& measured) const {
  SCOPED_TRACE(model);
  const auto server = CompileTo(model, farm_.Path("server.hone"), farm_.ServerWords("alice"));
  const auto snapshot =
      CompileTo(model, farm_.Path("snapshot.hone"), {"--db", farm_.Path("snapshot.db")});
  const std::string bytes = ReadFile(farm_.Path("server.hone")).value_or("");
  EXPECT_FALSE(bytes.empty());
  EXPECT_EQ(ReadFile(farm_.Path("snapshot.hone")).value_or(""), bytes);
  EXPECT_EQ(snapshot.at("kernels"), server.at("kernels"));
  size_t exact = 0;
  for (const auto& kernel : snapshot.at("kernels")) {
    const bool tuned = measured.contains(kernel.at("workload").get<std::string>());
    EXPECT_EQ(kernel.at("rung") == "exact", tuned) << kernel.dump();
    exact += tuned;
  }
  std::printf("%s: %zu of %zu kernels exact\n", model.c_str(), exact,
              snapshot.at("kernels").size());
  EXPECT_GE(exact, 3u);
}

TEST_P(EndToEndTest, ThreeWorkersTuneTwoModelsAndBuildsReadWhatTheyFound) {
  const auto [first, second] = TwoCores();
  Daemon honed("honed", On(first, farm_.HonedArgv()), farm_.Path("honed.log"));
  Daemon w0("w0", Worker("w0", first, "cpu:0", "build"), farm_.Path("w0.log"));
  Daemon w1("w1", Worker("w1", second, "cpu:1", "run"), farm_.Path("w1.log"));
  Daemon w2("w2", Worker("w2", second, "cpu:1", "run"), farm_.Path("w2.log"));
  for (Daemon* daemon : {&honed, &w0, &w1, &w2}) daemon->Start();
  for (TunedModel& model : models_) model.client->Start();
  // Half way, when the two that share a core have both measured something.
  ASSERT_TRUE(Eventually(
      [&] {
        const size_t one = Answers("w1"), other = Answers("w2");
        const size_t first_ones = GetParam() ? 0 : Answers("w0");
        return one > 3 && other > 3 && first_ones + one + other > kHalf;
      },
      60 * kNsPerSecond))
      << w1.Said() << w2.Said() << honed.Said();
  w2.Kill();
  device_class_ = DeviceClass();
  for (TunedModel& model : models_) {
    std::optional<int> code;
    EXPECT_TRUE(
        Eventually([&] { return (code = model.client->Ended()).has_value(); }, 120 * kNsPerSecond));
    EXPECT_EQ(code, 0) << model.client->Said() << honed.Said();
  }
  for (Daemon* daemon : {&w0, &w1}) EXPECT_EQ(daemon->Terminate(), 0) << daemon->Said();
  EXPECT_EQ(Answers("w0") > 0, !GetParam()) << "who builds measures nothing";
  const Ran snapshot = RunToEnd(Hone({"db", "snapshot", "-o", farm_.Path("snapshot.db")}));
  ASSERT_EQ(snapshot.code, 0) << snapshot.err;
  const std::set<std::string> measured = Measured();
  for (const TunedModel& model : models_) CheckBuilds(model.name, measured);
  EXPECT_EQ(honed.Terminate(), 0) << honed.Said();
}

INSTANTIATE_TEST_SUITE_P(Roles, EndToEndTest, ::testing::Bool(),
                         [](const auto& split) { return split.param ? "Split" : "Both"; });

}  // namespace
}  // namespace hone::farm
