#include "worker/lease_desk.h"

#include <algorithm>
#include <utility>

#include "base/sha256.h"
#include "proto/convert.h"

namespace hone::worker {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kFirstPauseNs = 50 * kNsPerMs;
constexpr int64_t kLongestPauseNs = 5000 * kNsPerMs;

}  // namespace

LeaseDesk::LeaseDesk(DeskOptions options, proto::Hello hello)
    : options_(options), hello_(std::move(hello)), shelf_(options.shelf_bytes) {}

void LeaseDesk::OnConnected() {
  connected_ = true;
  welcomed_ = false;
  out_.clear();
  grants_on_stream_ = credit_offered_ = results_on_stream_ = results_allowed_ = 0;
  uploading_ = 0;
  hello_.held.clear();
  for (auto& [number, lease] : leases_) {
    lease.sent = false;
    lease.uploaded = 0;
    lease.uploaded_bytes = 0;
    // A finished one is no suspect any more.
    hello_.held.push_back({lease.token, lease.phase == Phase::kStarted});
  }
  out_.emplace_back(hello_);
}

void LeaseDesk::OnDisconnected() {
  connected_ = welcomed_ = false;
  out_.clear();
}

void LeaseDesk::OnWelcome(const proto::Welcome& welcome) {
  welcomed_ = true;
  heartbeat_ms_ = welcome.heartbeat_ms;
  for (const Hash128& token : welcome.drop) Forget(token);
  if (draining_) out_.emplace_back(proto::Draining{});
  lost_unsent_ = lost_.has_value();
  // What was asked for on an earlier stream does not come any more.
  if (incoming_) AskForPart();
  OfferCredit();
}

void LeaseDesk::OnGrant(const proto::Grant& grant, int64_t now_ns) {
  ++grants_on_stream_;
  if (by_token_.contains(grant.token)) return;
  const int64_t number = next_number_++;
  leases_[number] = {.token = grant.token,
                     .session = grant.session,
                     .attempt = grant.attempt,
                     .job = grant.job,
                     .start_by_ns = now_ns + grant.start_by_ms * kNsPerMs,
                     .run_by_ns = grant.run_by_ms * kNsPerMs,
                     .kind = grant.kind,
                     .wanted = grant.wanted};
  by_token_[grant.token] = number;
  if (draining_) return Return(number, "the worker is ending");
  if (lost_) return Return(number, *lost_);
  if (grant.kind != proto::LeaseKind::kRun) {
    queue_.push_back(number);
    return;
  }
  Lease& lease = leases_.at(number);
  lease.phase = Phase::kFetching;
  for (const proto::Artifact& artifact : grant.artifacts) lease.artifacts.push_back({artifact, {}});
  fetching_.push_back(number);
  FetchNext();
}

void LeaseDesk::AskForPart() {
  out_.emplace_back(proto::Fetch{.token = leases_.at(incoming_->number).token,
                                 .sha256 = incoming_->artifact.sha256,
                                 .offset = static_cast<int64_t>(incoming_->data.size())});
}

void LeaseDesk::FetchNext() {
  while (!incoming_ && !fetching_.empty()) {
    Lease& lease = leases_.at(fetching_.front());
    for (HeldArtifact& held : lease.artifacts) {
      if (held.artifact.outcome != measure::Outcome::kOk || held.bytes != nullptr) continue;
      held.bytes = shelf_.Find(held.artifact.sha256);
      if (held.bytes != nullptr) continue;
      incoming_ = Incoming{fetching_.front(), held.artifact, {}};
      return AskForPart();
    }
    lease.phase = Phase::kQueued;
    queue_.push_back(fetching_.front());
    fetching_.pop_front();
  }
}

void LeaseDesk::OnChunk(const proto::ArtifactChunk& chunk) {
  if (!incoming_ || chunk.sha256 != incoming_->artifact.sha256 ||
      chunk.total_bytes != incoming_->artifact.bytes ||
      chunk.offset != static_cast<int64_t>(incoming_->data.size())) {
    return;  // of a lease that was given up, or said twice
  }
  incoming_->data += chunk.data;
  if (static_cast<int64_t>(incoming_->data.size()) < chunk.total_bytes) return AskForPart();
  const Incoming whole = *std::exchange(incoming_, std::nullopt);
  // The hash is what honed said with the lease, not what came with the bytes.
  if (Sha256Hex(whole.data) == whole.artifact.sha256) {
    shelf_.Put(whole.artifact.sha256, std::make_shared<const std::string>(whole.data));
  } else {
    std::erase(fetching_, whole.number);
    Finish(whole.number, {.outcome = measure::Outcome::kWorkerLost,
                          .message = "an artifact came that is not what its hash says"});
  }
  FetchNext();
}

void LeaseDesk::Forget(const Hash128& token) {
  const auto known = by_token_.find(token);
  if (known == by_token_.end()) return;
  std::erase(queue_, known->second);
  std::erase(fetching_, known->second);
  if (incoming_ && incoming_->number == known->second) incoming_.reset();
  if (uploading_ == known->second) uploading_ = 0;
  const Phase phase = leases_.at(known->second).phase;
  if (phase == Phase::kTaken || phase == Phase::kStarted) cancelled_.push_back(known->second);
  leases_.erase(known->second);
  by_token_.erase(known);
  FetchNext();
  OfferCredit();
}

void LeaseDesk::Return(int64_t number, const std::string& reason) {
  const Hash128 token = leases_.at(number).token;
  if (connected_) out_.emplace_back(proto::Returned{token, reason});
  Forget(token);
}

void LeaseDesk::OnServer(const proto::ServerMessage& message, int64_t now_ns) {
  if (const auto* welcome = std::get_if<proto::Welcome>(&message)) {
    OnWelcome(*welcome);
  } else if (const auto* grant = std::get_if<proto::Grant>(&message)) {
    OnGrant(*grant, now_ns);
  } else if (const auto* ack = std::get_if<proto::Acknowledgement>(&message)) {
    const auto known = by_token_.find(ack->token);
    if (known == by_token_.end()) return;
    const Lease& lease = leases_.at(known->second);
    if (lease.built) return Forget(ack->token);
    acknowledged_.push_back({.token = lease.token,
                             .session = lease.session,
                             .attempt = lease.attempt,
                             .verdict = ack->verdict,
                             .digest = lease.result ? proto::ResultDigest(*lease.result) : ""});
    Forget(ack->token);
  } else if (const auto* revoke = std::get_if<proto::Revoke>(&message)) {
    Forget(revoke->token);
  } else if (const auto* credit = std::get_if<proto::ServerCredit>(&message)) {
    results_allowed_ = std::max(results_allowed_, credit->results);
  } else if (const auto* chunk = std::get_if<proto::ArtifactChunk>(&message)) {
    OnChunk(*chunk);
  } else if (std::holds_alternative<proto::Probe>(message)) {
    probe_asked_ = true;
  } else {
    BeginDraining();
  }
}

void LeaseDesk::Start(int64_t number, int64_t now_ns) {
  const auto found = leases_.find(number);
  if (found == leases_.end()) return;
  Lease& lease = found->second;
  lease.phase = Phase::kStarted;
  lease.started_ns = now_ns;
  lease.run_by_ns += now_ns;
  if (connected_) out_.emplace_back(proto::Started{lease.token});
}

void LeaseDesk::SetProbes(const proto::Probes& probes) {
  hello_.probes = probes;
  if (connected_) out_.emplace_back(probes);
}

bool LeaseDesk::started_unsent() const {
  return std::ranges::any_of(
      out_, [](const auto& m) { return std::holds_alternative<proto::Started>(m); });
}

void LeaseDesk::Finish(int64_t number, proto::WorkResult result) {
  const auto found = leases_.find(number);
  if (found == leases_.end() || found->second.phase == Phase::kFinished) return;
  result.token = found->second.token;
  found->second.phase = Phase::kFinished;
  found->second.result = std::move(result);
  found->second.artifacts.clear();
  OfferCredit();
}

void LeaseDesk::FinishBuild(int64_t number, std::vector<HeldArtifact> artifacts, int64_t build_ns) {
  const auto found = leases_.find(number);
  if (found == leases_.end()) return;
  Lease& lease = found->second;
  lease.phase = Phase::kFinished;
  proto::Built& built = lease.built.emplace();
  built.token = lease.token;
  built.build_ns = build_ns;
  for (const HeldArtifact& held : artifacts) built.artifacts.push_back(held.artifact);
  lease.artifacts = std::move(artifacts);
  OfferCredit();
}

void LeaseDesk::Tick(int64_t now_ns) {
  std::vector<int64_t> late;
  for (const auto& [number, lease] : leases_) {
    if (lease.phase == Phase::kFinished) continue;
    const int64_t by = lease.phase == Phase::kStarted ? lease.run_by_ns : lease.start_by_ns;
    if (now_ns >= by) late.push_back(number);
  }
  for (const int64_t number : late) {
    if (leases_.at(number).phase == Phase::kStarted) {
      TimeOut(number, now_ns);
    } else {
      Return(number, "its time is over");
    }
  }
}

void LeaseDesk::TimeOut(int64_t number, int64_t now_ns) {
  const int64_t ran_ns = now_ns - leases_.at(number).started_ns;
  cancelled_.push_back(number);
  Finish(number, {.outcome = measure::Outcome::kRunTimeout,
                  .message = "it ran for " + std::to_string(ran_ns / kNsPerMs) +
                             " ms, longer than its lease: honed --run-by-seconds",
                  .run_ns = ran_ns});
}

void LeaseDesk::BeginDraining() {
  if (std::exchange(draining_, true)) return;
  if (connected_) out_.emplace_back(proto::Draining{});
  std::vector<int64_t> rest;
  for (const auto& [number, lease] : leases_) {
    // What a builder has taken is what runs there.
    const bool build = lease.kind == proto::LeaseKind::kBuild && lease.phase == Phase::kTaken;
    if (lease.phase < Phase::kStarted && !build) rest.push_back(number);
  }
  for (const int64_t number : rest) Return(number, "the worker is ending");
}

void LeaseDesk::SetDeviceLost(std::string reason) {
  if (lost_) return;
  lost_ = std::move(reason);
  lost_unsent_ = welcomed_;
  std::erase_if(out_, [](const auto& m) { return std::holds_alternative<proto::WorkerCredit>(m); });
  std::vector<int64_t> unstarted;
  for (const auto& [number, lease] : leases_) {
    if (lease.phase < Phase::kStarted) unstarted.push_back(number);
  }
  for (const int64_t number : unstarted) Return(number, *lost_);
}

int64_t LeaseDesk::unfinished() const {
  return std::ranges::count_if(
      leases_, [](const auto& item) { return item.second.phase != Phase::kFinished; });
}

void LeaseDesk::OfferCredit() {
  if (!welcomed_ || draining_ || lost_) return;
  const int64_t kept = static_cast<int64_t>(leases_.size()) - unfinished();
  const int64_t room = kept >= options_.most_unacknowledged
                           ? 0
                           : std::max<int64_t>(0, options_.ahead - unfinished());
  // Grants that are on their way count against it: the total only ever grows.
  if (grants_on_stream_ + room <= credit_offered_) return;
  credit_offered_ = grants_on_stream_ + room;
  out_.emplace_back(proto::WorkerCredit{credit_offered_});
}

std::optional<DeskJob> LeaseDesk::TakeJob() {
  if (queue_.empty()) return std::nullopt;
  const int64_t number = queue_.front();
  queue_.pop_front();
  Lease& lease = leases_.at(number);
  lease.phase = Phase::kTaken;
  return DeskJob{.number = number,
                 .token = lease.token,
                 .job = lease.job,
                 .kind = lease.kind,
                 .wanted = lease.wanted,
                 .artifacts = lease.artifacts};
}

std::optional<proto::WorkerMessage> LeaseDesk::TakeMessage() {
  if (!connected_) return std::nullopt;
  if (!out_.empty()) {
    proto::WorkerMessage message = std::move(out_.front());
    out_.pop_front();
    return message;
  }
  if (!welcomed_) return std::nullopt;
  // One lease's artifacts after the other's.
  const auto next = uploading_ != 0 ? leases_.find(uploading_)
                                    : std::ranges::find_if(leases_, [](const auto& item) {
                                        const Lease& lease = item.second;
                                        return lease.phase == Phase::kFinished && !lease.sent;
                                      });
  if (next != leases_.end()) {
    if (results_on_stream_ >= results_allowed_) return std::nullopt;
    return TakeAnswer(next->first, next->second);
  }
  // After the answers: their leases are not to end as if the device had been lost over them.
  if (std::exchange(lost_unsent_, false)) return proto::DeviceLost{*lost_};
  return std::nullopt;
}

std::optional<proto::WorkerMessage> LeaseDesk::TakeAnswer(int64_t number, Lease& lease) {
  for (; lease.built && lease.uploaded < lease.artifacts.size(); ++lease.uploaded) {
    const HeldArtifact& held = lease.artifacts[lease.uploaded];
    if (held.bytes == nullptr) continue;
    const auto at = static_cast<size_t>(lease.uploaded_bytes);
    if (at == held.bytes->size()) {
      lease.uploaded_bytes = 0;
      continue;
    }
    uploading_ = number;
    proto::ArtifactChunk chunk{.token = lease.token,
                               .sha256 = held.artifact.sha256,
                               .total_bytes = held.artifact.bytes,
                               .offset = lease.uploaded_bytes,
                               .data = held.bytes->substr(at, options_.chunk_bytes)};
    lease.uploaded_bytes += static_cast<int64_t>(chunk.data.size());
    return chunk;
  }
  uploading_ = 0;
  lease.sent = true;
  ++results_on_stream_;
  if (lease.built) return *lease.built;
  return *lease.result;
}

proto::Heartbeat LeaseDesk::MakeHeartbeat() const {
  proto::Heartbeat heartbeat{.busy_ns = busy_ns_, .sentinel_ns = sentinel_ns_};
  for (const auto& [number, lease] : leases_) {
    heartbeat.held.push_back({lease.token, lease.phase == Phase::kStarted});
  }
  return heartbeat;
}

int64_t BackOff::NextNs() {
  const int64_t most = std::min(kLongestPauseNs, kFirstPauseNs << std::min(tries_, 10));
  ++tries_;
  return most / 2 + static_cast<int64_t>(random_.Below(static_cast<uint64_t>(most / 2)));
}

}  // namespace hone::worker
