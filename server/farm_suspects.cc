#include <string_view>
#include <tuple>

#include "fmt/format.h"

#include "base/log.h"
#include "server/farm.h"

// Suspects: attempts whose worker was lost while they ran. The next worker of one is another, where
// there is one, and has nothing else, so that only it can be blamed again; where work never runs
// out, a worker is emptied for it. One that runs well there says that it was the machine.
namespace hone::server {
namespace {

// Kept in farm_suspects.reason: a later start reads it back.
constexpr std::string_view kLast = "while it ran, last '";
constexpr std::string_view kWhy = "': ";

}  // namespace

std::string LossReason(int losses, const std::string& key, const std::string& why) {
  return fmt::format("its worker was lost {} times {}{}{}{}", losses, kLast, key, kWhy, why);
}

std::string LostWith(const std::string& reason) {
  const size_t last = reason.find(kLast);
  if (last == std::string::npos) return "";
  const size_t begin = last + kLast.size();
  const size_t end = reason.find(kWhy, begin);
  return end == std::string::npos ? "" : reason.substr(begin, end - begin);
}

void Farm::JudgeLoss(const std::string& key, const Attempt& attempt, int64_t now_ns) {
  const auto found = workers_.find(attempt.lost_with);
  if (found == workers_.end() || found->first == key) return;
  Worker& lost = found->second;
  // Whoever has answered well since then was killed, or cut off, by something else. Nobody knows
  // that of what was granted in an earlier life of honed.
  if (lost.good_answers != attempt.lost_after || lost.device != DeviceState::kActive) return;
  lost.lost_in_row.insert(CandidateOf(*attempt.job, 0));
  const size_t row = lost.lost_in_row.size();
  LogWarning("device '{}' was lost with what runs on '{}', {} in a row", found->first, key, row);
  if (static_cast<int>(row) < policy_.max_lost_in_row) return;
  Quarantine(lost,
             fmt::format("lost with {} candidates in a row that are good elsewhere, last on '{}'",
                         row, key),
             now_ns);
}

bool Farm::MayRunAlone(const std::string& key, const Worker& worker, const Session& session,
                       int64_t number, int64_t now_ns) const {
  const bool up = worker.stream && worker.state == WorkerState::kConnected &&
                  worker.device == DeviceState::kActive;
  if (!up || !session.suspects.contains(number)) return false;
  const bool run = worker.hello.role == proto::WorkerRole::kRun;
  return worker.hello.role != proto::WorkerRole::kBuild &&
         session.attempts.at(number).not_before_ns <= now_ns &&
         (!run || session.ready.contains(number)) && MayRun(key, worker, session) &&
         MayTake(key, worker, session, number);
}

void Farm::Unreserve(const std::string& key, Worker& worker) {
  if (!worker.reserved) return;
  reserved_.erase(*worker.reserved);
  worker.reserved.reset();
  hungry_.insert(key);
}

Farm::Session* Farm::ReservedFor(const std::string& key, Worker& worker, int64_t now_ns,
                                 int64_t* number) {
  if (!worker.reserved) return nullptr;
  const auto session = sessions_.find(worker.reserved->first);
  *number = worker.reserved->second;
  if (session != sessions_.end() && MayRunAlone(key, worker, session->second, *number, now_ns)) {
    return &session->second;
  }
  Unreserve(key, worker);
  return nullptr;
}

void Farm::ReserveForSuspects(int64_t now_ns) {
  const std::map<Suspect, std::string> before = reserved_;
  for (const auto& [suspect, key] : before) {
    int64_t number = 0;
    (void)ReservedFor(key, workers_.at(key), now_ns, &number);
  }
  for (const auto& [id, session] : sessions_) {
    for (const int64_t number : session.suspects) {
      if (reserved_.contains({id, number})) continue;
      std::tuple<size_t, uint64_t> least;
      const std::string* emptied = nullptr;
      for (const auto& [key, worker] : workers_) {
        if (worker.reserved || !MayRunAlone(key, worker, session, number, now_ns)) continue;
        const std::tuple load(worker.leases.size(), worker.last_grant);
        if (emptied != nullptr && load >= least) continue;
        least = load;
        emptied = &key;
      }
      if (emptied == nullptr) continue;
      workers_.at(*emptied).reserved = {id, number};
      reserved_[{id, number}] = *emptied;
      hungry_.insert(*emptied);
    }
  }
}

}  // namespace hone::server
