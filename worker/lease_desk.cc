#include "worker/lease_desk.h"

#include <algorithm>
#include <utility>

#include "proto/convert.h"

namespace hone::worker {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kFirstPauseNs = 50 * kNsPerMs;
constexpr int64_t kLongestPauseNs = 5000 * kNsPerMs;

}  // namespace

LeaseDesk::LeaseDesk(DeskOptions options, proto::Hello hello)
    : options_(options), hello_(std::move(hello)) {}

void LeaseDesk::OnConnected() {
  connected_ = true;
  welcomed_ = false;
  out_.clear();
  grants_on_stream_ = credit_offered_ = results_on_stream_ = results_allowed_ = 0;
  hello_.held.clear();
  for (auto& [number, lease] : leases_) {
    lease.sent = false;
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
                     .run_by_ns = grant.run_by_ms * kNsPerMs};
  by_token_[grant.token] = number;
  if (draining_) return Return(number, "the worker is ending");
  queue_.push_back(number);
}

void LeaseDesk::Forget(const Hash128& token) {
  const auto known = by_token_.find(token);
  if (known == by_token_.end()) return;
  std::erase(queue_, known->second);
  const Phase phase = leases_.at(known->second).phase;
  if (phase == Phase::kTaken || phase == Phase::kStarted) cancelled_.push_back(known->second);
  leases_.erase(known->second);
  by_token_.erase(known);
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
  if (found == leases_.end()) return;
  result.token = found->second.token;
  found->second.phase = Phase::kFinished;
  found->second.result = std::move(result);
  OfferCredit();
}

void LeaseDesk::Tick(int64_t now_ns) {
  std::vector<int64_t> late;
  for (const auto& [number, lease] : leases_) {
    if (lease.phase == Phase::kFinished) continue;
    const int64_t by = lease.phase == Phase::kStarted ? lease.run_by_ns : lease.start_by_ns;
    if (now_ns >= by) late.push_back(number);
  }
  for (const int64_t number : late) Return(number, "its time is over");
}

void LeaseDesk::BeginDraining() {
  if (std::exchange(draining_, true)) return;
  if (connected_) out_.emplace_back(proto::Draining{});
  const std::deque<int64_t> queued = queue_;
  for (const int64_t number : queued) Return(number, "the worker is ending");
}

int64_t LeaseDesk::unfinished() const {
  return std::ranges::count_if(
      leases_, [](const auto& item) { return item.second.phase != Phase::kFinished; });
}

void LeaseDesk::OfferCredit() {
  if (!welcomed_ || draining_) return;
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
  return DeskJob{number, lease.token, lease.job};
}

std::optional<proto::WorkerMessage> LeaseDesk::TakeMessage() {
  if (!connected_) return std::nullopt;
  if (!out_.empty()) {
    proto::WorkerMessage message = std::move(out_.front());
    out_.pop_front();
    return message;
  }
  if (!welcomed_ || results_on_stream_ >= results_allowed_) return std::nullopt;
  for (auto& [number, lease] : leases_) {
    if (lease.phase != Phase::kFinished || lease.sent) continue;
    lease.sent = true;
    ++results_on_stream_;
    return *lease.result;
  }
  return std::nullopt;
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
