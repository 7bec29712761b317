#include "server/metrics.h"

#include <unistd.h>

#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/file.h"
#include "tests/test_paths.h"

namespace hone::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

DeviceView MakeDevice(const std::string& worker) {
  DeviceView device;
  device.info.worker = worker;
  device.info.device.name = "cpu:0";
  device.info.connected = true;
  device.info.busy_ns = 2'500'000'000;
  device.info.results = 7;
  return device;
}

TEST(Metrics, SaysEveryNumberOfTheFarm) {
  ProcessFacts facts{.version = "1.2", .builder = "3+22.1", .now_ns = 9'000'000'000};
  facts.started_ns = 1'000'000'000;
  facts.started_unix = 1.9e9;
  facts.usage = {12.5, 4096, 8192, 7, 1024};
  facts.commits.Add(300'000, 5);
  facts.commits.Add(700'000, 1);
  facts.commits.Add(60'000'000'000, 1);
  facts.log_bytes = 4096;
  FarmView view{.taken_ns = 1};
  view.counters.expired = 3;
  view.counters.duplicates = 4;
  view.counters.quarantined = 1;
  view.counters.held_back = 6;
  facts.trouble = "disk full";
  facts.trouble_ns = 2'500'000'000;
  view.counters.outcomes[static_cast<size_t>(measure::Outcome::kWrongAnswer)] = 2;
  view.oldest_waiting_ns = 1'500'000'000;
  view.open_leases = 11;
  view.devices.push_back(MakeDevice("w1"));
  view.devices[0].busy_share = 0.75;
  view.devices[0].info.probes = proto::Probes{1.31e11, 2.1e10, 0.25, 1};
  view.devices.push_back(MakeDevice("w2"));
  view.devices[1].info.state = db::DeviceState::kQuarantined;
  view.projects.push_back({.name = "p", .charged_ns = 5'000'000'000});
  const std::string text = MetricsText(facts, view);
  for (const char* line : {
           "hone_build_info{version=\"1.2\",builder=\"3+22.1\"} 1\n",
           "# TYPE process_cpu_seconds_total counter\n",
           "process_cpu_seconds_total 12.5\n",
           "process_resident_memory_bytes 4096\n",
           "process_virtual_memory_bytes 8192\n",
           "process_open_fds 7\n",
           "process_max_fds 1024\n",
           "hone_device_state{worker=\"w2\",device=\"cpu:0\",state=\"quarantined\"} 1\n",
           "hone_device_state{worker=\"w2\",device=\"cpu:0\",state=\"active\"} 0\n",
           "hone_log_writable 0\n",
           "hone_log_held_back_seconds 2.5\n",
           "hone_devices{state=\"active\"} 1\n",
           "hone_devices{state=\"quarantined\"} 1\n",
           "hone_devices{state=\"lost\"} 0\n",
           "hone_quarantines_total 1\n",
           "hone_results_held_back_total 6\n",
           "hone_device_probe_flop_per_second{worker=\"w1\",device=\"cpu:0\"} 131000000000\n",
           "hone_device_probe_memory_bytes_per_second{worker=\"w1\",device=\"cpu:0\"} "
           "21000000000\n",
           "hone_device_probe_noise_ratio{worker=\"w1\",device=\"cpu:0\"} 0.25\n",
           "hone_log_bytes{file=\"main\"} 4096\n",
           "# TYPE hone_commit_seconds histogram\n",
           "hone_commit_seconds_bucket{le=\"0.0005\"} 1\n",
           "hone_commit_seconds_bucket{le=\"0.001\"} 2\n",
           "hone_commit_seconds_bucket{le=\"5\"} 2\n",
           "hone_commit_seconds_bucket{le=\"+Inf\"} 3\n",
           "hone_commit_seconds_count 3\n",
           "hone_commit_units_total 7\n",
           "hone_leases_ended_total{reason=\"expired\"} 3\n",
           "hone_leases_open 11\n",
           "hone_results_refused_total{reason=\"duplicate\"} 4\n",
           "hone_attempts_total{outcome=\"wrong_answer\"} 2\n",
           "hone_attempts_total{outcome=\"ok\"} 0\n",
           "hone_queue_oldest_age_seconds 1.5\n",
           "hone_device_up{worker=\"w1\",device=\"cpu:0\"} 1\n",
           "hone_device_busy_ratio{worker=\"w1\",device=\"cpu:0\"} 0.75\n",
           "hone_device_busy_seconds_total{worker=\"w1\",device=\"cpu:0\"} 2.5\n",
           "hone_project_device_seconds_total{project=\"p\"} 5\n",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("hone_device_noise_ratio{"))) << "not known yet";
  EXPECT_THAT(text, Not(HasSubstr("probe_noise_ratio{worker=\"w2\""))) << "nor this";
}

TEST(Metrics, EveryCounterHasANumberOfItsOwn) {
  ProcessFacts facts{.version = "1.2", .builder = "3+22.1", .streams = 51};
  for (size_t i = 0; i < facts.refusals.size(); ++i)
    facts.refusals[i] = static_cast<int64_t>(301 + i);
  FarmView view{.taken_ns = 1,
                .counters = {.granted = 101,
                             .results = 102,
                             .acknowledged = 103,
                             .duplicates = 104,
                             .conflicts = 105,
                             .stale = 106,
                             .invalid = 107,
                             .expired = 108,
                             .returned = 109,
                             .revoked = 110,
                             .lost = 111,
                             .condemned = 112,
                             .refused_workers = 113,
                             .replaced_streams = 114,
                             .infrastructure_faults = 115,
                             .quarantined = 116,
                             .held_back = 117,
                             .granted_builds = 118,
                             .artifacts = 119,
                             .artifacts_refused = 120,
                             .artifacts_no_room = 121,
                             .artifacts_unasked = 122,
                             .artifacts_gone = 123,
                             .outcomes = {}}};
  for (size_t i = 0; i < view.counters.outcomes.size(); ++i) {
    view.counters.outcomes[i] = static_cast<int64_t>(201 + i);
  }
  view.sessions[{1, 2}];
  view.sessions[{3, 4}];
  view.waiting = 52;
  view.open_leases = 53;
  view.started_leases = 54;
  std::vector<std::string> lines = {"hone_leases_granted_total 101",
                                    "hone_results_total 102",
                                    "hone_leases_ended_total{reason=\"done\"} 103",
                                    "hone_results_refused_total{reason=\"duplicate\"} 104",
                                    "hone_results_refused_total{reason=\"conflict\"} 105",
                                    "hone_results_refused_total{reason=\"stale\"} 106",
                                    "hone_results_refused_total{reason=\"invalid\"} 107",
                                    "hone_leases_ended_total{reason=\"expired\"} 108",
                                    "hone_leases_ended_total{reason=\"returned\"} 109",
                                    "hone_leases_ended_total{reason=\"revoked\"} 110",
                                    "hone_leases_ended_total{reason=\"lost\"} 111",
                                    "hone_condemned_total 112",
                                    "hone_workers_refused_total 113",
                                    "hone_worker_streams_replaced_total 114",
                                    "hone_infrastructure_faults_total 115",
                                    "hone_quarantines_total 116",
                                    "hone_results_held_back_total 117",
                                    "hone_build_leases_granted_total 118",
                                    "hone_artifacts_total{result=\"taken\"} 119",
                                    "hone_artifacts_total{result=\"refused\"} 120",
                                    "hone_artifacts_total{result=\"no_room\"} 121",
                                    "hone_artifacts_total{result=\"unasked\"} 122",
                                    "hone_artifacts_total{result=\"gone\"} 123",
                                    "hone_sessions 2",
                                    "hone_worker_streams 51",
                                    "hone_queue_attempts 52",
                                    "hone_leases_open 53",
                                    "hone_leases_started 54"};
  const char* const kWhy[] = {"no_certificate", "stranger", "identity", "expired",
                              "revoked",        "role",     "protocol"};
  for (int i = 0; i < kNumRefusals; ++i) {
    lines.push_back(
        fmt::format("hone_callers_refused_total{{reason=\"{}\"}} {}", kWhy[i], 301 + i));
  }
  for (int i = 0; i < measure::kNumOutcomes; ++i) {
    lines.push_back(fmt::format("hone_attempts_total{{outcome=\"{}\"}} {}",
                                measure::ToString(static_cast<measure::Outcome>(i)), 201 + i));
  }
  const std::string text = MetricsText(facts, view);
  for (const std::string& line : lines) EXPECT_THAT(text, HasSubstr("\n" + line + "\n"));
}

TEST(Metrics, ItKnowsItsOwnUsage) {
  const ProcessUsage usage = ReadProcessUsage();
  EXPECT_GE(usage.cpu_seconds, 0);
  EXPECT_GT(usage.resident_bytes, 1 << 20);
  EXPECT_GT(usage.virtual_bytes, usage.resident_bytes);
  EXPECT_GE(usage.open_files, 3) << "the standard streams";
  EXPECT_GE(usage.most_files, usage.open_files);
  // A name may look like the end of itself; what is not there is not told.
  const std::string folder = ::testing::TempDir() + "metrics-proc";
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(WriteFileAtomically(folder + "/stat",
                                  "7 (a) b) S 1 1 1 0 -1 0 0 0 0 0 300 200 0 0 20 0 9 0 77 "
                                  "1000000 5 0 0\n")
                  .ok());
  const ProcessUsage other = ReadProcessUsage(folder);
  EXPECT_DOUBLE_EQ(other.cpu_seconds, 500.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  EXPECT_EQ(other.virtual_bytes, 1'000'000);
  EXPECT_EQ(other.resident_bytes, 5 * ::sysconf(_SC_PAGE_SIZE));
  EXPECT_EQ(other.open_files, -1);
  EXPECT_THAT(MetricsText({.usage = {}}, {}), Not(HasSubstr("process_open_fds")));
}

TEST(Metrics, NamesFromOutsideStayInTheirLabels) {
  FarmView view{.taken_ns = 1};
  view.devices.push_back(MakeDevice("w\"} 1\nhone_evil 1\n\\"));
  const std::string text = MetricsText({}, view);
  EXPECT_THAT(text, HasSubstr(R"(worker="w\"} 1\nhone_evil 1\n\\")"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_NE(line.rfind("hone_evil", 0), 0u);
}

TEST(Metrics, BeforeTheFirstLookThereIsNothingOfTheFarm) {
  ProcessFacts facts;
  facts.trouble = "disk full";
  const std::string text = MetricsText(facts, {});
  EXPECT_THAT(text, HasSubstr("hone_log_writable 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("hone_leases_open")));
}

// The grammar of the text format, as far as we use it; metrics.md names every family.
TEST(Metrics, EveryLineIsOfTheFormatAndEveryNameDocumented) {
  FarmView view{.taken_ns = 1};
  view.devices.push_back(MakeDevice("w1"));
  view.devices[0].noise = 0.01;
  view.projects.push_back({.name = "p"});
  const std::regex comment("# (HELP|TYPE) (hone|process)_[a-z_]+ .+");
  const std::regex sample(
      "((?:hone|process)_[a-z_]+)(\\{([a-z_]+=\"[^\"]*\",?)+\\})? [-+0-9.eInf]+");
  const auto doc = ReadFile(testing::SourceDir() + "/docs/reference/metrics.md");
  ASSERT_TRUE(doc.ok());
  std::set<std::string> families;
  std::istringstream lines(MetricsText(
      {.usage = ReadProcessUsage(), .certificates = {{"spiffe://hone/server/h", 1'900'000'000}}},
      view));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(std::regex_match(line, comment) || std::regex_match(line, sample)) << line;
    if (line.rfind("# TYPE ", 0) == 0) {
      families.insert(line.substr(7, line.find(' ', 7) - 7));
    }
  }
  EXPECT_GT(families.size(), 25u);
  for (const std::string& family : families) {
    EXPECT_NE(doc->find("`" + family), std::string::npos) << family << " is missing in metrics.md";
  }
}

TEST(CommitTimes, QuantilesAreEndsOfBuckets) {
  CommitTimes times;
  EXPECT_EQ(times.QuantileNs(0.99), 0);
  for (int i = 0; i < 98; ++i) times.Add(200'000, 1);
  times.Add(3'000'000, 1);
  times.Add(4'000'000'000, 1);
  EXPECT_EQ(times.QuantileNs(0.5), 250'000);
  EXPECT_EQ(times.QuantileNs(0.99), 5'000'000);
  EXPECT_EQ(times.QuantileNs(1), 4'000'000'000);
}

}  // namespace
}  // namespace hone::server
