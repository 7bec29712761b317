#include <tuple>

#include "server/farm.h"

// Suspects: attempts whose worker was lost while they ran. The next worker of one has nothing else,
// so that only it can be blamed again; where work never runs out, a worker is emptied for it.
namespace hone::server {

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
