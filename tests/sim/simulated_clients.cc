#include <algorithm>
#include <utility>

#include "fmt/format.h"

#include "base/status.h"
#include "server/request_once.h"
#include "tests/sim/farm_simulation.h"

// Clients of a simulated farm: each asks for its session until it is answered, over a network that
// loses half of what is said and under partitions, then watches it.
namespace hone::sim {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr size_t kEventsAtOnce = 8;

}  // namespace

void FarmSimulation::Reply(SimClient& client, SimClient::Reply reply) {
  reply.arrives_ns = now_ns_ + Delay();
  if (random_.Chance(0.2)) return;  // lost
  client.replies.push_back(std::move(reply));
  if (random_.Chance(0.1)) client.replies.push_back(client.replies.back());
}

void FarmSimulation::Accepted(size_t index, const Hash128& id) {
  SimSession& session = sessions_[index];
  if (session.created && session.id != id) wrong_ = "one request made two sessions";
  if (!std::exchange(session.created, true)) session.created_ns = now_ns_;
  session.id = id;
}

void FarmSimulation::AnswerRequest(size_t index) {
  const server::UnaryRequest request{
      .caller = "alice", .id = fmt::format("request {}", index), .body = "start"};
  const auto first = server::FirstAnswer(*store_, request);
  if (!first.ok()) {
    if (!disk_.off()) wrong_ = StatusMessage(first.status());
    return;
  }
  if (!first->empty()) return Reply(clients_[index], {.session = *Hash128::FromHex(*first)});
  Gather({});  // a unit that is refused takes nothing else with it: as in FarmLoop, its own unit
  Held held{.asked_by = index};
  held.asked_for = HashBytes(fmt::format("session {}", created_++));
  held.unit.changes.push_back(db::AddFarmSession{{.id = held.asked_for,
                                                  .owner = "alice",
                                                  .project = sessions_[index].project,
                                                  .state = db::SessionState::kRunning}});
  db::FarmRequest answer =
      server::AnswerOf(request, held.asked_for.ToHex(), std::max<int64_t>(wall_ns_ / kMs, 0));
  if (options_.mistake == Mistake::kAnswerApart) {
    Gather(std::move(held));
    Held later;
    later.unit.changes.push_back(std::move(answer));
    // Soon, but not with it.
    if (random_.Chance(0.5)) Gather(std::move(later));
    return;
  }
  held.unit.changes.push_back(std::move(answer));
  Gather(std::move(held));
}

void FarmSimulation::AnswerWatch(SimClient& client) {
  SimClient::Reply reply{.after = client.seen.empty() ? 0 : client.seen.back().first};
  int64_t last = reply.after;
  const absl::Status scanned = log_->ScanEvents(
      {.session = stream_id_, .after_sequence = reply.after}, [&](const db::Event& event) {
        last = event.sequence;
        reply.events.emplace_back(event.sequence, event.payload);
        return reply.events.size() < kEventsAtOnce ? absl::OkStatus()
                                                   : absl::CancelledError("enough");
      });
  if (!scanned.ok() && !absl::IsCancelled(scanned)) return;  // the power is off
  if (options_.mistake == Mistake::kShowBeforeCommit) {
    for (const Held& held : held_) {
      for (const db::Event& event : held.unit.facts.events) {
        reply.events.emplace_back(++last, event.payload);
      }
    }
  }
  if (!reply.events.empty()) Reply(client, std::move(reply));
}

void FarmSimulation::StepClient(size_t index) {
  SimClient& client = clients_[index];
  if (now_ns_ < client.cut_until_ns) return;
  while (!client.replies.empty() && client.replies.front().arrives_ns <= now_ns_) {
    auto& other = client.replies[options_.operators ? random_.Below(client.replies.size()) : 0];
    if (other.arrives_ns <= now_ns_) std::swap(client.replies.front(), other);
    const SimClient::Reply reply = std::move(client.replies.front());
    client.replies.pop_front();
    if (reply.session != Hash128{}) {
      client.answered = true;
      if (sessions_[index].id != reply.session) wrong_ = "a client was told of another session";
    } else if (reply.after == (client.seen.empty() ? 0 : client.seen.back().first)) {
      client.seen.insert(client.seen.end(), reply.events.begin(), reply.events.end());
    }
  }
  if (now_ns_ < client.ask_ns) return;
  client.ask_ns = now_ns_ + random_.Between(20, 300) * kMs;
  if (random_.Chance(0.2)) return;  // lost on its way
  if (client.answered) return AnswerWatch(client);
  ++counts_.retries;
  AnswerRequest(index);
  if (random_.Chance(0.1)) AnswerRequest(index);  // and said twice
}

}  // namespace hone::sim
