#include <algorithm>
#include <utility>

#include "fmt/format.h"

#include "base/log.h"
#include "base/sha256.h"
#include "proto/convert.h"
#include "proto/limits.h"
#include "server/farm.h"
#include "server/lease_time.h"

// Workers that build for others, and those that run what others built: the way of an artifact from
// a build lease through the cache to a run lease.
namespace hone::server {
namespace {

constexpr int kMostBuilds = 9;
/// Attempts that wait built, or are being built, for each run worker beyond its credit.
constexpr int64_t kSpareBuilds = 2;
constexpr int kLongestPause = 6;  ///< doublings
constexpr int kKindShift = 62;

int64_t TextBytes(const proto::Job& job) {
  size_t bytes = job.workload.size();
  for (const std::string& trace : job.traces) bytes += trace.size();
  return static_cast<int64_t>(bytes);
}

bool IsUp(const FarmWorker& worker) {
  return worker.stream && worker.state == WorkerState::kConnected &&
         worker.device == DeviceState::kActive;
}

}  // namespace

bool IsOfBuilding(measure::Outcome outcome) {
  switch (outcome) {
    case measure::Outcome::kIllegal:
    case measure::Outcome::kBuildFailed:
    case measure::Outcome::kBuildTimeout:
    case measure::Outcome::kBuildCrashed:
    case measure::Outcome::kOutOfMemory:
    case measure::Outcome::kWorkerLost: return true;
    default: return false;
  }
}

int64_t RoomOf(const FarmWorker& worker) {
  return std::clamp<int64_t>(worker.leases_allowed - worker.leases_sent, 0, proto::kMaxHeld);
}

proto::LeaseKind KindOf(const Hash128& token) {
  switch (token.low >> kKindShift) {
    case 1: return proto::LeaseKind::kBuild;
    case 2: return proto::LeaseKind::kRun;
    default: return proto::LeaseKind::kBoth;
  }
}

Hash128 MakeToken(uint64_t start, uint64_t count, proto::LeaseKind kind) {
  const uint64_t bits = kind == proto::LeaseKind::kBuild ? 1
                        : kind == proto::LeaseKind::kRun ? 2
                                                         : 0;
  return {start, count | bits << kKindShift};
}

bool Farm::AnyWorker(proto::WorkerRole role, const Session* session) const {
  return std::ranges::any_of(workers_, [&](const auto& item) {
    return item.second.hello.role == role && IsUp(item.second) &&
           (session == nullptr || MayRun(item.first, item.second, *session));
  });
}

std::string Farm::MissingPartner(const Worker& worker) const {
  if (!worker.stream) return "";
  if (worker.hello.role == proto::WorkerRole::kRun &&
      !AnyWorker(proto::WorkerRole::kBuild, nullptr)) {
    return "nobody builds for it: start a worker with --role build";
  }
  if (worker.hello.role == proto::WorkerRole::kBuild &&
      !AnyWorker(proto::WorkerRole::kRun, nullptr)) {
    return "no worker runs what it builds: start one with --role run";
  }
  return "";
}

bool Farm::MayBuildFor(const Session& session) const {
  int64_t demand = 0;
  for (const auto& [key, worker] : workers_) {
    if (worker.hello.role != proto::WorkerRole::kRun || !IsUp(worker)) continue;
    if (!MayRun(key, worker, session)) continue;
    demand += RoomOf(worker) + kSpareBuilds;
  }
  if (demand == 0) return false;
  int64_t supply = 0;
  for (const auto& [id, other] : sessions_) {
    if (other.terms.device_class != session.terms.device_class) continue;
    supply += other.building + static_cast<int64_t>(other.ready.size());
  }
  return supply < demand;
}

bool Farm::MayServe(const std::string& key, const Worker& worker, const Session& session) const {
  if (worker.hello.role != proto::WorkerRole::kBuild) return MayRun(key, worker, session);
  return session.begun && MayBuildFor(session);
}

bool Farm::MayHave(const std::string& key, const Worker& worker, const Session& session,
                   int64_t number) const {
  const bool alone =
      session.attempts.at(number).losses > 0 && worker.hello.role != proto::WorkerRole::kBuild;
  return (!alone || IsIdle(worker)) && MayTake(key, worker, session, number);
}

bool Farm::MayTake(const std::string& key, const Worker& worker, const Session& session,
                   int64_t number) const {
  const Attempt& a = session.attempts.at(number);
  // The code of models comes from clients.
  if (a.job->kind == proto::JobKind::kModel &&
      (worker.hello.role == proto::WorkerRole::kBuild || !worker.hello.sandboxed)) {
    return false;
  }
  if (worker.hello.role == proto::WorkerRole::kBuild) {
    return !session.ready.contains(number) && (!a.avoid.contains(key) || !OthersCanBuild(key, a));
  }
  // One that is built is a run worker's, where there is any that takes it.
  if (worker.hello.role == proto::WorkerRole::kBoth && session.ready.contains(number) &&
      std::ranges::any_of(workers_, [&](const auto& item) {
        return item.second.hello.role == proto::WorkerRole::kRun && IsUp(item.second) &&
               !a.avoid.contains(item.first) && MayConfirm(item.first, a) &&
               MayRun(item.first, item.second, session);
      })) {
    return false;
  }
  return MayConfirm(key, a) && (!a.avoid.contains(key) || !OthersCanRun(key, session, a.avoid));
}

bool Farm::OthersCanBuild(const std::string& key, const Attempt& attempt) const {
  return std::ranges::any_of(workers_, [&](const auto& item) {
    return item.first != key && item.second.hello.role == proto::WorkerRole::kBuild &&
           IsUp(item.second) && !attempt.avoid.contains(item.first);
  });
}

void Farm::Wait(Session& session, int64_t number, Attempt& attempt, int64_t now_ns) {
  attempt.waiting_since_ns = now_ns;
  session.waiting.insert(number);
  if (attempt.losses > 0) session.suspects.insert(number);
  if (!divided_) return;
  // Finalists were built for their screens.
  const bool shared = !attempt.keys.empty() || AnyWorker(proto::WorkerRole::kRun, nullptr);
  if (shared && Lacking(attempt).empty()) {
    session.ready.insert(number);
  }
}

void Farm::Unwait(Session& session, int64_t number) {
  session.waiting.erase(number);
  session.suspects.erase(number);
  session.ready.erase(number);
}

void Farm::KeepPackages(const proto::Job& job, const Packages& packages) {
  for (size_t i = 0; i <= job.traces.size(); ++i) {
    const std::string& sha256 = i < job.traces.size() ? job.traces[i] : job.workload;
    const std::shared_ptr<const std::string>& bytes = packages.at(sha256);
    artifacts_.Put(ArtifactCache::KeyOf(job, i, versions_.builder),
                   {.artifact = {.sha256 = sha256, .bytes = static_cast<int64_t>(bytes->size())},
                    .bytes = bytes});
  }
}

std::vector<int> Farm::Lacking(Attempt& attempt) {
  if (attempt.keys.empty()) {
    for (size_t i = 0; i <= attempt.job->traces.size(); ++i) {
      attempt.keys.push_back(ArtifactCache::KeyOf(*attempt.job, i, versions_.builder));
    }
  }
  std::vector<int> lacking;
  for (size_t i = 0; i < attempt.keys.size(); ++i) {
    const auto at = attempt.keys.begin() + static_cast<std::ptrdiff_t>(i);
    const bool twice = std::find(attempt.keys.begin(), at, attempt.keys[i]) != at;
    if (!twice && artifacts_.Find(attempt.keys[i]) == nullptr) {
      lacking.push_back(static_cast<int>(i));
    }
  }
  return lacking;
}

bool Farm::Equip(Session& session, int64_t number, const Worker& worker, proto::Grant* grant) {
  Attempt& attempt = session.attempts.at(number);
  if (const int64_t bytes = TextBytes(*attempt.job); bytes > proto::kMaxJobBytes) {
    // Its Grant would end the stream of each worker in turn.
    Unwait(session, number);
    AnswerFor(session.terms.id, number, attempt,
              {.outcome = measure::Outcome::kWorkerLost,
               .message = fmt::format("its workload and traces have {} bytes; at most {} travel",
                                      bytes, proto::kMaxJobBytes)});
    return false;
  }
  const bool model = attempt.job->kind == proto::JobKind::kModel;
  if (worker.hello.role == proto::WorkerRole::kBoth && !model) return true;
  std::vector<int> lacking = Lacking(attempt);
  if (model && !lacking.empty()) {
    // Nobody here can build them again.
    Unwait(session, number);
    AnswerFor(session.terms.id, number, attempt,
              {.outcome = measure::Outcome::kWorkerLost,
               .message = "its packages do not fit into what honed keeps"});
    return false;
  }
  if (worker.hello.role == proto::WorkerRole::kBuild) {
    if (lacking.empty()) {
      session.ready.insert(number);
      return false;
    }
    if (attempt.builds >= kMostBuilds) {
      Unwait(session, number);
      AnswerFor(session.terms.id, number, attempt,
                {.outcome = measure::Outcome::kWorkerLost,
                 .message = "its artifacts do not fit into what honed keeps"});
      return false;
    }
    grant->kind = proto::LeaseKind::kBuild;
    grant->wanted = std::move(lacking);
    return true;
  }
  if (!lacking.empty()) {
    session.ready.erase(number);
    return false;
  }
  grant->kind = proto::LeaseKind::kRun;
  for (const std::string& key : attempt.keys) {
    grant->artifacts.push_back(artifacts_.Find(key)->artifact);
  }
  return true;
}

void Farm::RefuseLease(const Worker& worker, const Hash128& token, const std::string& why) {
  Send(worker, proto::Revoke{token, why});
}

bool Farm::HasRoom(const std::string& name, int64_t bytes) const {
  const auto held = unused_of_name_.find(name);
  const int64_t of_name = (held == unused_of_name_.end() ? 0 : held->second) + bytes;
  const int64_t all = unused_bytes_ + bytes;
  // The half is for those that hold little, however many hold all that they may.
  if (of_name <= policy_.unused_of_any) return all <= policy_.unused_bytes;
  return of_name <= policy_.unused_bytes / 2 - all;
}

void Farm::NoRoom(const Hash128& token, int64_t now_ns) {
  const Lease& lease = leases_.at(token);
  const std::string key = lease.worker;
  const std::string why =
      fmt::format("unfinished builds hold {} bytes of {}, {} of them this name's: no room for more",
                  unused_bytes_, policy_.unused_bytes, unused_of_name_[workers_.at(key).name]);
  LogWarning("'{}' builds again later: {}", key, why);
  ++counters_.artifacts_no_room;
  // Whoever builds it next may be the same: all the others may be full, or stuck.
  PauseBuild(sessions_.at(lease.session).attempts.at(lease.attempt), now_ns);
  RefuseLease(workers_.at(key), token, why);
  EndLease(token, LeaseTrigger::kGiveBack, Blame::kNobody, why, now_ns);
}

void Farm::OnChunk(Worker& worker, const proto::ArtifactChunk& chunk, int64_t now_ns) {
  const auto open = leases_.find(chunk.token);
  if (open == leases_.end() ||
      open->second.worker != worker.name + "/" + worker.hello.device.name ||
      KindOf(chunk.token) != proto::LeaseKind::kBuild ||
      open->second.state != LeaseState::kGranted) {
    ++counters_.artifacts_unasked;
    // Once: the rest of it is on its way.
    if (chunk.offset == 0) RefuseLease(worker, chunk.token, "no build lease that is open");
    return;
  }
  Lease& lease = open->second;
  if (lease.uploaded.contains(chunk.sha256)) return;  // said twice
  std::optional<Worker::Upload>& upload = worker.upload;
  const bool same = upload && upload->token == chunk.token && upload->sha256 == chunk.sha256 &&
                    upload->total_bytes == chunk.total_bytes;
  if (!same && (upload || chunk.offset != 0)) {
    return BuildFault(chunk.token, "parts of an artifact without those before them", now_ns);
  }
  if (!same) {
    if (chunk.total_bytes > proto::kMaxArtifactBytes) {
      return BuildFault(chunk.token, "an artifact that is larger than one may be", now_ns);
    }
    if (lease.uploaded_bytes + chunk.total_bytes > proto::kMaxBuildBytes) {
      return BuildFault(chunk.token, "more bytes of artifacts than a lease may have", now_ns);
    }
    if (!HasRoom(worker.name, chunk.total_bytes)) return NoRoom(chunk.token, now_ns);
    int64_t& of_name = unused_of_name_[worker.name];
    upload = Worker::Upload{
        chunk.token,
        chunk.sha256,
        chunk.total_bytes,
        {},
        std::make_shared<const CountedBytes>(unused_bytes_, of_name, chunk.total_bytes)};
  }
  const auto at = static_cast<size_t>(chunk.offset);
  if (at < upload->data.size() && upload->data.compare(at, chunk.data.size(), chunk.data) == 0) {
    return;  // said twice
  }
  if (at != upload->data.size()) {
    return BuildFault(chunk.token,
                      fmt::format("a part of an artifact from byte {} on, after {} bytes", at,
                                  upload->data.size()),
                      now_ns);
  }
  upload->data += chunk.data;
  if (static_cast<int64_t>(upload->data.size()) < upload->total_bytes) return;
  std::string data = std::move(upload->data);
  const std::shared_ptr<const CountedBytes> counted = std::move(upload->counted);
  upload.reset();
  if (Sha256Hex(data) != chunk.sha256) {
    return BuildFault(chunk.token, "an artifact that is not what its hash says", now_ns);
  }
  lease.uploaded_bytes += chunk.total_bytes;
  lease.counted.push_back(counted);
  lease.uploaded[chunk.sha256] = std::make_shared<const std::string>(std::move(data));
}

void Farm::OnOldBuilt(const Worker& worker, const Hash128& token) {
  const std::optional<db::FarmLease> ended = ended_.FindLease(token);
  proto::Acknowledgement ack{.token = token, .verdict = proto::Verdict::kStale};
  if (ended && ended->state == LeaseState::kBuilt) {
    ack.verdict = proto::Verdict::kAccepted;
    ++counters_.duplicates;
  } else {
    ack.reason = ended ? fmt::format("the lease was {}", NameOf(ended->state))
                       : "no such lease was ever granted here";
    ++counters_.stale;
  }
  Send(worker, std::move(ack));
}

void Farm::OnBuilt(Worker& worker, const proto::Built& built, int64_t now_ns) {
  if (!CountResult(worker)) return;
  const auto open = leases_.find(built.token);
  if (open == leases_.end()) return OnOldBuilt(worker, built.token);
  const Lease& lease = open->second;
  if (lease.worker != worker.name + "/" + worker.hello.device.name ||
      KindOf(built.token) != proto::LeaseKind::kBuild) {
    ++counters_.invalid;
    Send(worker, proto::Acknowledgement{built.token, proto::Verdict::kInvalid,
                                        "it has no such build lease"});
    return;
  }
  if (lease.state != LeaseState::kGranted) {
    ++counters_.conflicts;
    Send(worker, proto::Acknowledgement{built.token, proto::Verdict::kConflict,
                                        "this lease was answered with other content"});
    return;
  }
  if (built.artifacts.size() != lease.wanted.size()) {
    return BuildFault(
        built.token,
        fmt::format("{} artifacts, {} were asked for", built.artifacts.size(), lease.wanted.size()),
        now_ns);
  }
  for (const proto::Artifact& artifact : built.artifacts) {
    if (artifact.outcome == measure::Outcome::kWorkerLost) {
      return BuildFault(built.token, artifact.message, now_ns);
    }
    if (artifact.outcome != measure::Outcome::kOk) {
      if (IsOfBuilding(artifact.outcome)) continue;
      return BuildFault(
          built.token,
          fmt::format("'{}' of what was to be built only", measure::ToString(artifact.outcome)),
          now_ns);
    }
    const auto came = lease.uploaded.find(artifact.sha256);
    if (came == lease.uploaded.end() ||
        static_cast<int64_t>(came->second->size()) != artifact.bytes) {
      return BuildFault(built.token, "it names an artifact that did not come", now_ns);
    }
  }
  TakeArtifacts(built, lease);
  Attempt& attempt = sessions_.at(lease.session).attempts.at(lease.attempt);
  // Its worker's word, as far as there was time for it.
  const int64_t cores = std::max(1, worker.hello.device.cores);
  attempt.build_ns += std::min(built.build_ns, MostNs(lease, now_ns) * cores);
  ++attempt.builds;
  ++worker.results;
  // Goes out after the commit of the lease's end.
  Send(worker, proto::Acknowledgement{built.token, proto::Verdict::kAccepted});
  EndLease(built.token, LeaseTrigger::kBuilt, Blame::kNobody, "", now_ns);
}

void Farm::TakeArtifacts(const proto::Built& built, const Lease& lease) {
  const Attempt& attempt = sessions_.at(lease.session).attempts.at(lease.attempt);
  for (size_t i = 0; i < built.artifacts.size(); ++i) {
    ArtifactCache::Entry entry{.artifact = built.artifacts[i]};
    if (entry.artifact.outcome == measure::Outcome::kOk) {
      entry.bytes = lease.uploaded.at(entry.artifact.sha256);
    }
    artifacts_.Put(attempt.keys.at(static_cast<size_t>(lease.wanted[i])), std::move(entry));
  }
  counters_.artifacts += static_cast<int64_t>(built.artifacts.size());
}

void Farm::BuildFault(const Hash128& token, const std::string& why, int64_t now_ns) {
  const Lease& lease = leases_.at(token);
  const std::string key = lease.worker;
  Attempt& attempt = sessions_.at(lease.session).attempts.at(lease.attempt);
  LogWarning("'{}' built what cannot be used: {}", key, why);
  ++counters_.artifacts_refused;
  if (!PauseAfterFault(attempt, key, now_ns)) return GiveUp(token, why, now_ns);
  RefuseLease(workers_.at(key), token, why);
  EndLease(token, LeaseTrigger::kGiveBack, Blame::kNobody, why, now_ns);
}

void Farm::GiveUp(const Hash128& token, const std::string& why, int64_t now_ns) {
  Lease& lease = leases_.at(token);
  Attempt& attempt = sessions_.at(lease.session).attempts.at(lease.attempt);
  const auto worker = workers_.find(lease.worker);
  if (worker != workers_.end()) RefuseLease(worker->second, token, why);
  proto::WorkResult result{.token = token, .outcome = measure::Outcome::kWorkerLost};
  result.message = why;
  Move(lease.state, LeaseTrigger::kAnswer);
  Move(attempt.state, AttemptTrigger::kAnswer);
  lease.since_ns = now_ns;
  lease.content = proto::ResultDigest(result);
  attempt.result = std::move(result);
  Deliver(lease.session, lease.attempt, attempt);
}

void Farm::PauseAfterLostBuild(Attempt& attempt, const std::string& key, int64_t now_ns) {
  // Nothing of it ran: nobody is blamed, but a machine that dies of it shall not get it at once.
  attempt.avoid.insert(key);
  PauseBuild(attempt, now_ns);
}

void Farm::PauseBuild(Attempt& attempt, int64_t now_ns) {
  attempt.not_before_ns =
      now_ns + (policy_.first_pause_ns << std::min(attempt.lost_builds, kLongestPause));
  ++attempt.lost_builds;
}

void Farm::OnFetch(Worker& worker, const proto::Fetch& fetch, int64_t now_ns) {
  const auto open = leases_.find(fetch.token);
  if (open == leases_.end() ||
      open->second.worker != worker.name + "/" + worker.hello.device.name ||
      KindOf(fetch.token) != proto::LeaseKind::kRun) {
    ++counters_.stale;
    return RefuseLease(worker, fetch.token, "no run lease that is open");
  }
  const Lease& lease = open->second;
  if (lease.state == LeaseState::kAnswered) return;
  Attempt& attempt = sessions_.at(lease.session).attempts.at(lease.attempt);
  const auto wanted = std::ranges::find(lease.artifacts, fetch.sha256, &proto::Artifact::sha256);
  // After a restart nothing is there any more, nor what a lease may have.
  const bool known = !lease.artifacts.empty();
  const ArtifactCache::Entry* entry = nullptr;
  if (wanted != lease.artifacts.end()) {
    const auto position = static_cast<size_t>(wanted - lease.artifacts.begin());
    entry = artifacts_.Find(attempt.keys.at(position));
    if (entry != nullptr && entry->artifact.sha256 != fetch.sha256) entry = nullptr;
  } else if (known) {
    ++counters_.invalid;
    RefuseLease(worker, fetch.token, "an artifact that is not of this lease");
    return EndLease(fetch.token, LeaseTrigger::kGiveBack, Blame::kNobody,
                    "it asked for another lease's artifact", now_ns);
  }
  if (entry == nullptr || entry->bytes == nullptr) {
    constexpr char kGone[] = "its artifact is gone and will be built again";
    ++counters_.artifacts_gone;
    RefuseLease(worker, fetch.token, kGone);
    return EndLease(fetch.token, LeaseTrigger::kGiveBack, Blame::kNobody, kGone, now_ns);
  }
  const std::string& bytes = *entry->bytes;
  if (fetch.offset >= static_cast<int64_t>(bytes.size())) {
    ++counters_.invalid;
    return;
  }
  Send(worker, proto::ArtifactChunk{
                   .token = fetch.token,
                   .sha256 = fetch.sha256,
                   .total_bytes = static_cast<int64_t>(bytes.size()),
                   .offset = fetch.offset,
                   .data = bytes.substr(static_cast<size_t>(fetch.offset), policy_.chunk_bytes)});
}

}  // namespace hone::server
