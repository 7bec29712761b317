#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/sha256.h"
#include "server/farm.h"

// A Farm with builders and runners that are the test's own words; every commit succeeds at once.
namespace hone::server {

inline const Hash128 kSession = HashBytes("session");

class BuildLeaseTest : public ::testing::Test, public LeaseReader {
 protected:
  static constexpr int64_t kMs = 1'000'000;
  static constexpr char kTarget[] = "cpu:avx2,threads=1";

  explicit BuildLeaseTest(FarmPolicy policy = {}) : policy_(policy) { Start(1); }

  void Start(uint64_t start) {
    db::FarmState state;
    state.sessions.push_back({.id = kSession, .project = "p"});
    for (const auto& [token, lease] : store_) {
      if (lease.state <= db::LeaseState::kAnswered) state.leases.push_back(lease);
    }
    farm_ = std::make_unique<Farm>(policy_, Farm::Versions{.protocol = 1, .builder = "b"}, start,
                                   *this);
    farm_->Restore(state, now_ns_);
    farm_->BeginSession(
        {.id = kSession, .project = "p", .target = kTarget, .device_class = "class"});
    Settle();
  }

  void Connect(StreamId stream, const std::string& name, proto::WorkerRole role, int64_t credit,
               std::vector<proto::HeldLease> held = {}, const std::string& device = "cpu:0") {
    proto::Hello hello{.protocol = 1, .builder_version = "b", .measurement_policy = 1};
    hello.role = role;
    if (role == proto::WorkerRole::kRun) hello.builder_version.clear();
    hello.instance = HashBytes(name + device);
    hello.device = {.name = device, .device_class = "class", .fingerprint = "f"};
    if (role == proto::WorkerRole::kBuild) hello.device.device_class = "another";
    hello.device.target = kTarget;
    hello.device.cores = 1;
    hello.held = std::move(held);
    farm_->OnHello(stream, name, hello, now_ns_);
    Say(stream, proto::WorkerCredit{credit});
  }
  void Say(StreamId stream, const proto::WorkerMessage& message) {
    farm_->OnMessage(stream, message, now_ns_);
    Settle();
  }
  void Submit(int64_t attempt, std::vector<std::string> traces,
              proto::JobKind kind = proto::JobKind::kScreen) {
    farm_->Submit(kSession, attempt,
                  {.kind = kind, .workload = "w", .target = kTarget, .traces = std::move(traces)},
                  now_ns_);
    Settle();
  }
  void Pass(int64_t ns) {
    now_ns_ += ns;
    farm_->Tick(now_ns_);
    Settle();
  }
  /// Keeps what became durable, and what was said to whom.
  void Settle() {
    const FarmStep step = farm_->Take();
    for (const db::FarmChange& change : step.changes) {
      if (const auto* add = std::get_if<db::AddFarmLease>(&change)) {
        store_[add->lease.token] = add->lease;
      } else if (const auto* end = std::get_if<db::EndFarmLease>(&change)) {
        store_[end->token].state = end->state;
        store_[end->token].content = end->content;
        charged_ns_ += end->charge_ns;
      }
    }
    for (const Outgoing& out : step.messages) said_[out.stream].push_back(out.message);
    for (const Delivery& d : step.deliveries) {
      results_[d.attempt] = d.result;
      for (const db::FarmChange& change : farm_->EndsOf(kSession, {d.attempt})) {
        const auto& end = std::get<db::EndFarmLease>(change);
        store_[end.token].state = end.state;
        store_[end.token].content = end.content;
        charged_ns_ += end.charge_ns;
      }
      farm_->OnCommitted(kSession, {d.attempt}, now_ns_);
    }
    if (!step.deliveries.empty()) Settle();
  }
  std::optional<db::FarmLease> FindLease(const Hash128& token) override {
    const auto found = store_.find(token);
    return found == store_.end() ? std::nullopt : std::optional(found->second);
  }

  /// What a stream heard of one kind, and forgets it.
  template <typename Message>
  std::vector<Message> Heard(StreamId stream) {
    std::vector<Message> heard;
    std::erase_if(said_[stream], [&](const proto::ServerMessage& message) {
      const auto* it = std::get_if<Message>(&message);
      if (it != nullptr) heard.push_back(*it);
      return it != nullptr;
    });
    return heard;
  }
  std::vector<proto::Grant> Grants(StreamId stream) { return Heard<proto::Grant>(stream); }

  static proto::Artifact ArtifactOf(const std::string& bytes) {
    return {.sha256 = Sha256Hex(bytes), .bytes = static_cast<int64_t>(bytes.size())};
  }
  void Upload(StreamId stream, const Hash128& token, const std::string& bytes) {
    const proto::Artifact artifact = ArtifactOf(bytes);
    for (size_t at = 0; at < bytes.size(); at += 4) {
      Say(stream, proto::ArtifactChunk{token, artifact.sha256, artifact.bytes,
                                       static_cast<int64_t>(at), bytes.substr(at, 4)});
    }
  }
  /// Answers a build lease: an artifact each, named after what it is.
  void Build(StreamId stream, const proto::Grant& grant) {
    proto::Built built{.token = grant.token, .artifacts = {}, .build_ns = 7};
    for (const int position : grant.wanted) {
      const auto at = static_cast<size_t>(position);
      const std::string bytes =
          "code of " + (at < grant.job.traces.size() ? grant.job.traces[at] : "the default");
      Upload(stream, grant.token, bytes);
      built.artifacts.push_back(ArtifactOf(bytes));
    }
    Say(stream, built);
  }
  proto::Verdict VerdictOf(StreamId stream) {
    const auto heard = Heard<proto::Acknowledgement>(stream);
    EXPECT_EQ(heard.size(), 1u);
    return heard.empty() ? proto::Verdict{} : heard.front().verdict;
  }
  static proto::WorkResult Ok(const Hash128& token) {
    proto::WorkResult result{.token = token, .outcome = measure::Outcome::kOk};
    result.samples_ns = {1000};
    result.run_ns = 5;
    return result;
  }
  /// A builder 1 and a runner 2, and one attempt built: its run lease.
  proto::Grant GrantToRun() {
    Connect(1, "builder", proto::WorkerRole::kBuild, 4);
    Connect(2, "runner", proto::WorkerRole::kRun, 4);
    Submit(1, {"t1"});
    Build(1, Grants(1).at(0));
    EXPECT_EQ(VerdictOf(1), proto::Verdict::kAccepted);
    const auto grants = Grants(2);
    EXPECT_EQ(grants.size(), 1u);
    return grants.empty() ? proto::Grant{} : grants.front();
  }
  /// The lease was ended, its worker told so, and the attempt is nobody's doing.
  void ExpectRefused(StreamId stream, const Hash128& token, const std::string& why) {
    const auto revoked = Heard<proto::Revoke>(stream);
    ASSERT_EQ(revoked.size(), 1u);
    EXPECT_EQ(revoked.front().token, token);
    EXPECT_THAT(revoked.front().reason, ::testing::HasSubstr(why));
    EXPECT_EQ(store_.at(token).state, db::LeaseState::kReturned);
    EXPECT_EQ(farm_->counters().artifacts_refused, 1);
    EXPECT_EQ(farm_->waiting(), 1);
    EXPECT_TRUE(results_.empty());
  }

  FarmPolicy policy_;
  int64_t now_ns_ = 0, charged_ns_ = 0;
  std::unique_ptr<Farm> farm_;
  std::map<Hash128, db::FarmLease> store_;
  std::map<StreamId, std::vector<proto::ServerMessage>> said_;
  std::map<int64_t, proto::WorkResult> results_;
};

}  // namespace hone::server
