// A log that an older Hone wrote answers as it did: grouping, the names in Traces and the schema
// have changed since, what was tuned has not.

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "base/file.h"
#include "base/status.h"
#include "db/log_file.h"
#include "db/sqlite_connection.h"
#include "graph/onnx_export/zoo_layers.h"
#include "ir/text.h"
#include "schedule/space.h"
#include "search/search_event.h"
#include "tests/client/run_hone.h"
#include "tests/client/small_tuning.h"
#include "tests/test_paths.h"

namespace hone::client {
namespace {

using nlohmann::json;
using testing::Parse;
using testing::RunHone;

class KeptLogTest : public ::testing::Test {
 protected:
  /// A network with a kernel for each rule, and the log of `hone tune` on it.
  void SetUp() override {
    graph::OnnxWriter writer("kept", 1);
    std::string x = writer.Input("input", ir::DType::kF32, {1, 16, 14, 14});
    x = Relu(writer, "relu",
             Convolution(writer, "conv", x, {.in = 16, .out = 32, .kernel = 3, .pad = 1}));
    x = Convolution(writer, "depthwise", x,
                    {.in = 32, .out = 32, .kernel = 3, .pad = 1, .groups = 32});
    x = writer.Node("Reshape", "rows", {x, writer.Integers("rows.shape", {2}, {32, 196})});
    x = writer.Node("Softmax", "softmax", {x}, {{"axis", int64_t{1}}});
    x = writer.Node("CumSum", "sums", {x, writer.Integers("sums.axis", {}, {0})});
    x = writer.Node("Transpose", "turned", {x}, {{"perm", graph::Ints{1, 0}}});
    x = Projection(writer, "output", x, 32, 48);
    writer.Output("output", ir::DType::kF32, {196, 48});
    const absl::Status saved = writer.Save(model_);
    ASSERT_TRUE(saved.ok()) << saved;
    const auto sql = ReadFile(hone::testing::SourceDir() + "/tests/client/kept_log.sql");
    ASSERT_TRUE(sql.ok()) << sql.status();
    const auto made = db::Connection::Open(log_, db::Connection::Access::kCreate);
    ASSERT_TRUE(made.ok()) << made.status();
    const absl::Status filled = (*made)->Execute(*sql);
    ASSERT_TRUE(filled.ok()) << filled;
  }

  /// The record that answers for each kernel, by its Workload.
  std::map<std::string, std::string> Exact() const {
    std::map<std::string, std::string> records;
    const json answers =
        Parse(RunHone({"query", model_, "--json", "--db", log_, "--target", kTarget,
                       "--device-class", "cpu-1:AuthenticAMD-25-17-l2.1024K-l3.32768K-c2"}));
    for (const json& kernel : answers["kernels"]) {
      EXPECT_EQ(kernel["rung"], "exact") << kernel;
      EXPECT_TRUE(kernel["stale"].empty()) << kernel;
      records[kernel["workload"]] = kernel["record"];
    }
    return records;
  }

  static constexpr char kTarget[] = "cpu:avx2,threads=1";
  const testing::TemporaryFolder folder_;
  const std::string model_ = folder_.Path("kept.onnx");
  const std::string log_ = folder_.Path("tune.db");
};

TEST_F(KeptLogTest, EveryTraceIsStillAPointOfItsSpace) {
  const auto log = db::OpenLog(log_, {});
  ASSERT_TRUE(log.ok()) << log.status();
  std::map<Hash128, schedule::Space> spaces;
  ASSERT_TRUE((*log)
                  ->ScanWorkloads([&](const db::WorkloadRow& row) -> absl::Status {
                    HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(row.text));
                    ir::Target target;
                    std::string error;
                    EXPECT_TRUE(ir::ParseTarget(kTarget, &target, &error)) << error;
                    spaces.try_emplace(row.hash, workload, target, ir::AccuracyClass::kDefault);
                    return absl::OkStatus();
                  })
                  .ok());
  ASSERT_TRUE(
      (*log)
          ->ScanAttempts({},
                         [&](const db::Attempt& attempt) {
                           EXPECT_TRUE(spaces.at(attempt.key.workload).Locate(attempt.trace))
                               << attempt.trace;
                           return absl::OkStatus();
                         })
          .ok());
}

TEST_F(KeptLogTest, EveryEventIsReadAndWouldBeWrittenSo) {
  const auto log = db::OpenLog(log_, {});
  ASSERT_TRUE(log.ok()) << log.status();
  std::map<std::string, int> types;
  const absl::Status scanned = (*log)->ScanEvents({}, [&](const db::Event& event) -> absl::Status {
    ++types[event.type];
    HONE_ASSIGN_OR_RETURN(const search::SearchEvent read, search::ParseEvent(event));
    if (read.index() == 0) return absl::OkStatus();
    EXPECT_EQ(search::StreamEvent(event.session, read).payload, event.payload);
    return absl::OkStatus();
  });
  ASSERT_TRUE(scanned.ok()) << scanned;
  for (const char* type : {"join", "proposed", "result", "elapsed", "verdict", "finished"})
    EXPECT_GT(types[type], 0) << type;
}

TEST_F(KeptLogTest, AnswersExactAsItIsAndMigrated) {
  const std::map<std::string, std::string> records = {
      {"72f30bf9822c0e2b528c9c0472f6cb4c", "af7055d033393bc495f794c853c9ce39"},
      // Builder 6 made this log, so what it verified counts as screened, and the fastest answers.
      {"6e412bc3fbfcbfd9f44514a6ae95b607", "af7055d033393bc495f794c853c9cdfa"},
      {"37bf93cdcb9ef5b73734d46f17e809d6", "af7055d033393bc495f794c853c9cdf2"},
      {"c5b75640a88c1352cd78e43d047dc08c", "af7055d033393bc495f794c853c9ce3c"},
  };
  EXPECT_EQ(Exact(), records);
  {
    const auto log = db::OpenLog(log_, {.mode = db::OpenMode::kWrite});
    ASSERT_TRUE(log.ok()) << log.status();
    const auto report = (*log)->Verify();
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->problems.empty()) << report->problems.front();
  }
  EXPECT_EQ(ReadFile(log_ + ".schema2.bak").status(), absl::OkStatus());
  EXPECT_EQ(Exact(), records);
}

}  // namespace
}  // namespace hone::client
