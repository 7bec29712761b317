#include "tests/client/logged_network.h"

#include "base/versions.h"
#include "client/log_trace_source.h"
#include "db/log_file.h"
#include "tests/client/small_tuning.h"

namespace hone::client::testing {

using nlohmann::json;

void LoggedNetwork::SetUp() {
  ASSERT_EQ(RunHone({"zoo", "mlp", "-o", model_}).exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(TakeKernel(model_, 0));
  Append(trace_, 5000);
}

void LoggedNetwork::TakeKernel(const std::string& model, size_t kernel) {
  const json inspected = Parse(RunHone({"inspect", model, "--json", "--target", kTarget}));
  ASSERT_GT(inspected["kernels"].size(), kernel) << inspected;
  hash_ = inspected["kernels"][kernel]["workload"].get<std::string>();
  const std::string text = RunHone({"inspect", model, "--kernel", hash_, "--target", kTarget}).out;
  const size_t begin = text.find("workload 1\n"), trace = text.find("\ntrace\n");
  ASSERT_NE(begin, std::string::npos) << text;
  ASSERT_NE(trace, std::string::npos) << text;
  trace_ = text.substr(trace + 7);
  workload_ = text.substr(begin, trace + 1 - begin);
  while (HashBytes(workload_).ToHex() != hash_ && !workload_.empty()) workload_.pop_back();
  ASSERT_FALSE(workload_.empty()) << text;
}

void LoggedNetwork::Append(const std::string& trace, double median_ns, bool noisy) const {
  auto log = db::OpenLog(log_, {.mode = db::OpenMode::kWrite});
  ASSERT_TRUE(log.ok()) << log.status();
  const db::Device device = {"class-a", "fingerprint"};
  db::Batch batch;
  batch.workloads.push_back({HashBytes(workload_), workload_, 1, 1});
  batch.devices.push_back(device);
  batch.sessions.push_back({{7, 7}, "{}", 0, "{}", 1});
  db::TuningRecord r;
  r.id = {1, static_cast<uint64_t>(median_ns)};
  r.key = {HashBytes(workload_), kTarget, device.device_class, ir::AccuracyClass::kDefault,
           kCpuVersions.measurement_policy};
  r.device = db::DeviceId(device);
  r.trace = trace;
  r.trace_version = kTraceTextVersion;
  r.builder_version = BuilderVersionText();
  r.median_ns = r.low_ns = r.high_ns = median_ns;
  r.noisy = noisy;
  r.session = {7, 7};
  r.created_ms = 1;
  r.samples_ns = {median_ns};
  batch.records.push_back(r);
  const auto appended = (*log)->Append(batch);
  ASSERT_TRUE(appended.ok()) << appended.status();
}

}  // namespace hone::client::testing
