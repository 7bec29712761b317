#include "server/model_judgements.h"

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/fake_clock.h"
#include "base/sha256.h"
#include "db/log_file.h"
#include "ir/hash.h"
#include "ir/text.h"
#include "proto/convert.h"
#include "tests/server/farm_harness.h"
#include "tests/server/no_workers.h"
#include "tests/server/temporary_folder.h"

// A whole model is compared after its session: packages from a client, one lease (or more) of a
// device, a verdict in the log. The worker is the test's own words.
namespace hone::server {
namespace {

using ::testing::HasSubstr;

constexpr Hash128 kSession{4, 4};
constexpr StreamId kStream = 1;
constexpr char kWorkload[] =
    "workload 1\n"
    "x0: f32[8,16] input range(-1,1)\n"
    "x1: f32[16,4] constant\n"
    "s0: f32[8,4] output = sum[r0:16] (x0[i0, r0] * x1[r0, i1])\n";

const Hash128 kHash = ir::StructuralHash(*ir::ParseWorkload(kWorkload));

/// A worker that fetches what a grant names and answers with times that the test chose.
class JudgingSink final : public FarmSink {
 public:
  void Send(StreamId, const proto::ServerMessage& message) override {
    if (const auto* grant = std::get_if<proto::Grant>(&message)) {
      grants.push_back(*grant);
      if (grant->artifacts.empty()) return;
      say(proto::Fetch{.token = grant->token, .sha256 = grant->artifacts.front().sha256});
    } else if (const auto* chunk = std::get_if<proto::ArtifactChunk>(&message)) {
      fetched += chunk->data;
      answer(*chunk);
    }
  }
  void Close(StreamId, const absl::Status&) override {}
  void Deliver(const Delivery& delivery) override { taken += judgements->Deliver(delivery); }
  void Changed() override {}

  std::function<void(const proto::WorkerMessage&)> say;
  std::function<void(const proto::ArtifactChunk&)> answer;
  ModelJudgements* judgements = nullptr;
  std::vector<proto::Grant> grants;
  std::string fetched;
  std::atomic<int> taken{0};
};

class ModelJudgementsTest : public ::testing::Test {
 protected:
  ModelJudgementsTest() {
    sink_.judgements = &judgements_;
    sink_.say = [this](const proto::WorkerMessage& message) {
      loop_.Post(
          [message](Farm& farm, int64_t now_ns) { farm.OnMessage(kStream, message, now_ns); });
    };
    sink_.answer = [this](const proto::ArtifactChunk& chunk) {
      proto::WorkResult result{.token = chunk.token, .outcome = measure::Outcome::kOk};
      result.noisy = noisy_;
      result.compared = {{.samples_ns = default_ns_}, {.samples_ns = tuned_ns_.front()}};
      if (!mended_ns_.empty()) result.compared.push_back({.samples_ns = mended_ns_});
      if (!kernel_ns_.empty()) {
        result.compared[0].kernels = {{kHash, std::vector<int64_t>(20, 100)}};
        result.compared[1].kernels = {{kHash, kernel_ns_.front()}};
        if (kernel_ns_.size() > 1) kernel_ns_.erase(kernel_ns_.begin());
      }
      if (tuned_ns_.size() > 1) tuned_ns_.erase(tuned_ns_.begin());
      sink_.say(proto::Started{chunk.token});
      clock_.SleepNs(1'000'000);  // as long as the samples say that it ran
      sink_.say(result);
    };
    loop_.Start();
    const auto stored = loop_.Run(
        {.prepare =
             [&](Farm&, db::FarmStore&, db::FarmUnit& unit, int64_t) {
               proto::SessionSpec spec{.model = "m", .target = FarmHarness::kTarget, .trials = 1};
               spec.tasks.push_back({.workload = kWorkload, .name = "gemm", .count = 3});
               unit.changes.push_back(db::AddFarmSession{{.id = kSession,
                                                          .owner = "alice",
                                                          .project = "p",
                                                          .spec = proto::EncodeSpec(spec),
                                                          .state = state_,
                                                          .device_class = "class"}});
               unit.facts.sessions.push_back({.id = kSession, .request = "{}", .versions = "{}"});
               return absl::OkStatus();
             },
         .done = {}});
    EXPECT_TRUE(stored.ok()) << stored;
  }

  ~ModelJudgementsTest() override { loop_.Stop(); }

  void Connect(proto::WorkerRole role, bool sandboxed = true) {
    loop_.Post([role, sandboxed](Farm& farm, int64_t now_ns) {
      proto::Hello hello{.protocol = 1, .builder_version = "b", .measurement_policy = 1};
      hello.role = role;
      hello.sandboxed = sandboxed;
      hello.device = {.name = "cpu:0",
                      .device_class = "class",
                      .fingerprint = "f",
                      .target = FarmHarness::kTarget,
                      .cores = 1};
      farm.OnHello(kStream, "w1", hello, now_ns);
      farm.OnMessage(kStream, proto::WorkerCredit{100}, now_ns);
    });
  }
  std::string Put(const std::string& bytes) {
    const std::string sha256 = Sha256Hex(bytes);
    const auto half = bytes.size() / 2;
    for (const size_t at : {size_t{0}, size_t{0}, half}) {  // the first part twice
      const absl::Status put =
          judgements_.Put({.sha256 = sha256,
                           .total_bytes = static_cast<int64_t>(bytes.size()),
                           .offset = static_cast<int64_t>(at),
                           .data = bytes.substr(at, at == 0 ? half : bytes.size())});
      EXPECT_TRUE(put.ok()) << put;
    }
    return sha256;
  }
  ModelJudgements::Question Question() {
    return {.session = kSession,
            .owner = "alice",
            .default_package = Put("a package"),
            .tuned_package = Put("another one"),
            .tuned = {kHash},
            .seconds = 1};
  }
  /// Asks until it is done.
  ModelJudgements::Answer Await(const ModelJudgements::Question& question) {
    for (int i = 0; i < 1000; ++i) {
      const auto answer = judgements_.Ask(question);
      EXPECT_TRUE(answer.ok()) << answer.status();
      if (!answer.ok() || answer->done) return answer.value_or(ModelJudgements::Answer{});
      clock_.SleepNs(5'000'000);
    }
    ADD_FAILURE() << "it is never done";
    return {};
  }
  std::vector<db::ModelVerdict> Stored() {
    const Hash128 model = db::ModelHash({{ir::StructuralHash(*ir::ParseWorkload(kWorkload)), 3}});
    return reader_->With([&](db::LogFile& log) { return log.ModelVerdicts(model); }).value();
  }
  std::vector<db::FarmLease> Leases() {
    std::vector<db::FarmLease> leases;
    EXPECT_TRUE(loop_
                    .Run({.prepare =
                              [&](Farm&, db::FarmStore& store, db::FarmUnit&, int64_t) {
                                leases = store.LeasesOf(kSession).value();
                                return absl::OkStatus();
                              },
                          .done = {}})
                    .ok());
    return leases;
  }

  db::SessionState state_ = db::SessionState::kFinished;
  std::vector<int64_t> default_ns_ = std::vector<int64_t>(20, 2000);
  std::vector<std::vector<int64_t>> tuned_ns_ = {std::vector<int64_t>(20, 1000)};
  std::vector<int64_t> mended_ns_;               // none: two packages
  std::vector<std::vector<int64_t>> kernel_ns_;  // in the tuned one; 100 ns by default
  bool noisy_ = false;
  TemporaryFolder folder_;
  SystemMonotonicClock clock_;
  SystemWallClock wall_clock_;
  std::unique_ptr<db::LogFile> log_ =
      db::OpenLog(folder_ / "t.db", {.mode = db::OpenMode::kWrite}).value();
  std::unique_ptr<db::FarmStore> store_ = db::FarmStore::Open(*log_).value();
  std::unique_ptr<SharedReader> reader_ = SharedReader::Open(folder_ / "t.db").value();
  NoLeases leases_;
  JudgingSink sink_;
  Farm farm_{{}, {.protocol = 1, .builder = "b"}, 1, leases_};
  FarmLoop loop_{farm_, *store_, sink_, clock_};
  SessionBook book_{DriverContext{loop_, *reader_, clock_, wall_clock_, "b", "{}"}};
  ModelJudgements judgements_{loop_, book_};
};

TEST_F(ModelJudgementsTest, AVerdictIsOfTheDevicesSamplesAndStandsInTheLog) {
  Connect(proto::WorkerRole::kBoth);
  const ModelJudgements::Question question = Question();
  const ModelJudgements::Answer answer = Await(question);
  EXPECT_EQ(answer.reason, "");
  const std::vector<db::ModelVerdict> stored = Stored();
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_EQ(db::EventOf(stored[0]).payload, answer.payload);
  EXPECT_FALSE(stored[0].keeps_defaults);
  EXPECT_EQ(stored[0].default_ns, 2000);
  EXPECT_EQ(stored[0].tuned_ns, 1000);
  EXPECT_EQ(stored[0].ratio, 2);
  EXPECT_EQ(stored[0].rounds, 20);
  EXPECT_EQ(stored[0].device_class, "class");
  EXPECT_EQ(stored[0].tuned, question.tuned);
  EXPECT_EQ(stored[0].session, kSession);
  // Nothing is built for it, also by who could: packages are run as they came.
  ASSERT_EQ(sink_.grants.size(), 1U);
  EXPECT_EQ(sink_.grants[0].kind, proto::LeaseKind::kRun);
  EXPECT_EQ(sink_.grants[0].job.kind, proto::JobKind::kModel);
  EXPECT_EQ(sink_.grants[0].job.traces,
            (std::vector{question.default_package, question.tuned_package}));
  EXPECT_EQ(sink_.fetched, "a package");
  // Its lease ended with the verdict, and asking again changes nothing.
  const std::vector<db::FarmLease> leases = Leases();
  ASSERT_EQ(leases.size(), 1U);
  EXPECT_EQ(leases[0].state, db::LeaseState::kDone);
  EXPECT_EQ(Await(question).payload, answer.payload);
  EXPECT_EQ(Stored().size(), 1U);
}

TEST_F(ModelJudgementsTest, AModelThatIsNotFasterKeepsItsDefaults) {
  Connect(proto::WorkerRole::kRun);
  tuned_ns_ = {std::vector<int64_t>(20, 2100)};
  EXPECT_THAT(Await(Question()).payload, HasSubstr("keeps_defaults"));
  ASSERT_EQ(Stored().size(), 1U);
  EXPECT_TRUE(Stored()[0].keeps_defaults);
}

TEST_F(ModelJudgementsTest, OtherPackagesOfTheSessionAreComparedAnew) {
  Connect(proto::WorkerRole::kBoth);
  EXPECT_THAT(Await(Question()).payload, HasSubstr(" won "));
  tuned_ns_ = {std::vector<int64_t>(20, 2100)};
  ModelJudgements::Question question = Question();
  question.tuned_package = Put("a third one");
  EXPECT_THAT(Await(question).payload, HasSubstr("keeps_defaults"));
  EXPECT_EQ(Stored().size(), 2U);
}

TEST_F(ModelJudgementsTest, MoreRoundsDecideWhatTheFirstDidNot) {
  Connect(proto::WorkerRole::kBoth);
  std::vector<int64_t> either(20, 1950);
  for (size_t i = 0; i < either.size(); i += 2) either[i] = 2050;
  tuned_ns_ = {either, std::vector<int64_t>(20, 1000)};
  Await(Question());
  ASSERT_EQ(Stored().size(), 1U);
  EXPECT_GT(Stored()[0].rounds, 20);
  EXPECT_GT(sink_.grants.size(), 1U);
  for (const db::FarmLease& lease : Leases()) EXPECT_EQ(lease.state, db::LeaseState::kDone);
}

TEST_F(ModelJudgementsTest, AKernelThatLosesTwiceIsPutBackAndTheVerdictIsOfTheModelWithoutIt) {
  Connect(proto::WorkerRole::kBoth);
  kernel_ns_ = {std::vector<int64_t>(20, 300)};
  ModelJudgements::Question question = Question();
  question.may_put_back = true;
  const ModelJudgements::Answer lost = Await(question);
  EXPECT_EQ(lost.losing, std::vector{kHash});
  EXPECT_EQ(lost.payload, "");
  EXPECT_EQ(sink_.grants.size(), 2U) << "among many one loses by chance";
  EXPECT_TRUE(Stored().empty());
  question.may_put_back = false;
  question.mended_package = Put("the third one");
  question.put_back = lost.losing;
  mended_ns_ = std::vector<int64_t>(20, 800);
  const ModelJudgements::Answer answer = Await(question);
  EXPECT_EQ(
      sink_.grants.back().job.traces,
      (std::vector{question.default_package, question.tuned_package, question.mended_package}));
  ASSERT_EQ(Stored().size(), 1U) << answer.reason;
  EXPECT_EQ(Stored()[0].tuned_ns, 800);
  EXPECT_EQ(Stored()[0].put_back, std::vector{kHash});
  EXPECT_TRUE(Stored()[0].tuned.empty());
}

TEST_F(ModelJudgementsTest, AModelThatIsSlowerWithoutAKernelKeepsIt) {
  Connect(proto::WorkerRole::kBoth);
  ModelJudgements::Question question = Question();
  question.mended_package = Put("the third one");
  question.put_back = {kHash};
  mended_ns_ = std::vector<int64_t>(20, 1100);
  Await(question);
  ASSERT_EQ(Stored().size(), 1U);
  EXPECT_EQ(Stored()[0].tuned_ns, 1000);
  EXPECT_TRUE(Stored()[0].put_back.empty());
  EXPECT_EQ(Stored()[0].tuned, question.tuned);
}

TEST_F(ModelJudgementsTest, AKernelThatLosesOnceOrForAClientThatCannotPutItBackStays) {
  Connect(proto::WorkerRole::kBoth);
  kernel_ns_ = {std::vector<int64_t>(20, 300), std::vector<int64_t>(20, 90)};
  ModelJudgements::Question question = Question();
  question.may_put_back = true;
  EXPECT_THAT(Await(question).payload, HasSubstr(" won "));
  EXPECT_EQ(Stored()[0].tuned, question.tuned);
  EXPECT_EQ(Stored()[0].rounds, 40) << "both comparisons count";
  kernel_ns_ = {std::vector<int64_t>(20, 300)};
  question = Question();
  question.tuned_package = Put("a third one");
  EXPECT_THAT(Await(question).payload, HasSubstr(" won "));
}

TEST_F(ModelJudgementsTest, BranchesAreComparedWithWhatIsTunedAndHaveAVerdictOfTheirOwn) {
  Connect(proto::WorkerRole::kBoth);
  Await(Question());
  ModelJudgements::Question question = Question();
  question.default_package = Put("another one");
  question.tuned_package = Put("the same, side by side");
  question.subject = db::ModelVerdict::Subject::kBranches;
  question.tuned.clear();
  default_ns_ = std::vector<int64_t>(20, 1000);
  tuned_ns_ = {std::vector<int64_t>(20, 800)};
  const ModelJudgements::Answer answer = Await(question);
  EXPECT_EQ(answer.reason, "");
  const std::vector<db::ModelVerdict> stored = Stored();  // the newest first
  ASSERT_EQ(stored.size(), 2U);
  EXPECT_EQ(stored[1].subject, db::ModelVerdict::Subject::kTuning);
  EXPECT_EQ(stored[0].subject, db::ModelVerdict::Subject::kBranches);
  EXPECT_FALSE(stored[0].keeps_defaults);
  EXPECT_EQ(stored[0].ratio, 1.25);
  EXPECT_TRUE(stored[0].tuned.empty());
  EXPECT_EQ(stored[0].session, kSession);
  EXPECT_EQ(db::EventOf(stored[0]).payload, answer.payload);
}

TEST_F(ModelJudgementsTest, BranchesThatRanInTurnWhileKernelsWereTimedDecideNothing) {
  Connect(proto::WorkerRole::kBoth);
  kernel_ns_ = {std::vector<int64_t>(20, 100)};
  ModelJudgements::Question question = Question();
  question.subject = db::ModelVerdict::Subject::kBranches;
  question.tuned.clear();
  const ModelJudgements::Answer answer = Await(question);
  EXPECT_EQ(answer.payload, "");
  EXPECT_THAT(answer.reason, HasSubstr("its worker is older"));
  EXPECT_TRUE(Stored().empty());
}

TEST_F(ModelJudgementsTest, AVerdictSurvivesARestartOfHoned) {
  Connect(proto::WorkerRole::kBoth);
  const ModelJudgements::Question question = Question();
  const std::string payload = Await(question).payload;
  ModelJudgements restarted(loop_, book_);  // its memory is empty
  const auto answer = restarted.Ask(question);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->done);
  EXPECT_EQ(answer->payload, payload);
  ModelJudgements::Question other = question;
  other.tuned_package = Sha256Hex("another one");
  other.default_package = Sha256Hex("not compared");
  EXPECT_EQ(restarted.Ask(other).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ModelJudgementsTest, APackageOfMoreThan64MiBIsCompared) {
  Connect(proto::WorkerRole::kRun);
  ModelJudgements::Question question = Question();
  question.tuned_package = Put(std::string((size_t{64} << 20) + 1, 'x'));
  EXPECT_NE(Await(question).payload, "");
  EXPECT_EQ(sink_.grants.back().artifacts[1].bytes, (int64_t{64} << 20) + 1);
}

TEST_F(ModelJudgementsTest, WhatOtherProgramsDisturbedDecidesNothing) {
  Connect(proto::WorkerRole::kBoth);
  noisy_ = true;
  const ModelJudgements::Answer answer = Await(Question());
  EXPECT_EQ(answer.payload, "");
  EXPECT_THAT(answer.reason, HasSubstr("other programs disturbed it (0.002 ms by default"));
  EXPECT_TRUE(Stored().empty());
}

TEST_F(ModelJudgementsTest, ClientsCodeRunsInASandboxOnly) {
  Connect(proto::WorkerRole::kBoth, /*sandboxed=*/false);
  const auto answer = judgements_.Ask(Question());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->reason, HasSubstr("waits for a device of class class"));
  clock_.SleepNs(100'000'000);
  EXPECT_FALSE(judgements_.Ask(Question())->done);
  EXPECT_TRUE(Leases().empty());
}

TEST_F(ModelJudgementsTest, WhatCannotBeComparedIsRefusedByName) {
  const auto why = [&](const ModelJudgements::Question& question) {
    return std::string(judgements_.Ask(question).status().message());
  };
  ModelJudgements::Question question = Question();
  question.owner = "bob";
  EXPECT_EQ(judgements_.Ask(question).status().code(), absl::StatusCode::kNotFound);
  question = Question();
  question.session = {5, 5};
  EXPECT_EQ(judgements_.Ask(question).status().code(), absl::StatusCode::kNotFound);
  question = Question();
  question.tuned.push_back({7, 7});
  EXPECT_THAT(why(question), HasSubstr("the session has no workload"));
  question = Question();
  question.mended_package = Put("the third one");
  question.put_back = {{7, 7}};
  EXPECT_THAT(why(question), HasSubstr("is not one of the tuned"));
  question = Question();
  question.tuned_package = Sha256Hex("nothing that came");
  EXPECT_THAT(why(question), HasSubstr("is not here"));
  EXPECT_EQ(judgements_.Put({.sha256 = Sha256Hex("x"), .total_bytes = 1, .data = "y"}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(judgements_.Put({.sha256 = "s", .total_bytes = 9, .offset = 4, .data = "y"}).code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace hone::server
