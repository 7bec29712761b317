#include <algorithm>
#include <utility>

#include "tests/search/fake_measurer.h"
#include "tests/sim/farm_simulation.h"

// What honed's drivers of sessions do in a simulated farm: the real search, asked and told in
// steps that wait for their commits.
namespace hone::sim {
namespace {

using measure::Outcome;
using search::Tuner;

constexpr int64_t kMs = 1'000'000;

}  // namespace

void FarmSimulation::SetDeadline(const SimSession& session) {
  if (session.deadline_ns == INT64_MAX || options_.mistake == Mistake::kIgnoreDeadline) return;
  farm_->SetDeadline(session.id, FarmNs() + session.deadline_ns - now_ns_);
}

void FarmSimulation::Submit(SimSession& session, const Tuner::Proposal& p, bool anew) {
  session.in_flight[p.attempt] = p;
  const bool believed = anew && options_.mistake == Mistake::kBelieveAfterRestart;
  farm_->Submit(session.id, p.attempt, {.workload = "w", .target = kTarget, .traces = {p.trace}},
                {.fastest_ns = believed ? 0.0 : kFastestNs}, FarmNs());
}

bool FarmSimulation::HasReplayed(SimSession& session) {
  if (session.to_ask.empty()) return true;
  if (now_ns_ < session.asks_ns) return false;
  session.asks_ns = now_ns_;
  const std::vector<Tuner::Proposal> proposals = std::exchange(session.to_ask, {});
  for (const Tuner::Proposal& p : proposals) Submit(session, p, true);
  return true;
}

bool FarmSimulation::Compare(SimSession& session) {
  if (!options_.doubts || session.compared) return true;
  if (!std::exchange(session.comparing, true)) {
    farm_->Submit(session.id, ComparisonOf(session),
                  {.kind = proto::JobKind::kCompare,
                   .workload = "w",
                   .target = kTarget,
                   .traces = {"finalist", ""},
                   .rounds = 3},
                  {.fastest_ns = kFastestNs}, FarmNs());
  }
  return false;
}

void FarmSimulation::TakeVerdict(SimSession& session, const proto::WorkResult& result) {
  if (!session.comparing) wrong_ = "a comparison that was not asked for";
  if (session.verdict || session.compared) wrong_ = "a comparison was delivered twice";
  if (result.outcome == Outcome::kOk && result.compared.size() != 2) {
    wrong_ = "a comparison of other traces than were asked for";
  }
  session.verdict = result;
}

void FarmSimulation::CheckBelief(const server::Delivery& delivery) {
  const proto::WorkResult& result = delivery.result;
  bool lie = !result.samples_ns.empty() && result.samples_ns.front() == kLieNs;
  for (const proto::ComparedResult& one : result.compared) lie |= one.samples_ns.front() == kLieNs;
  if (!lie || result.noisy) return;
  if (lies_[delivery.attempt].size() < 2) {
    wrong_ = "a time that is too good counts, and nobody has confirmed it";
  }
  ++counts_.confirmed;
}

void FarmSimulation::CheckTime(const server::FarmStep& step) {
  constexpr int64_t kTick = 100 * kMs;
  for (const server::Delivery& delivery : step.deliveries) {
    for (const SimSession& s : sessions_) {
      if (s.id == delivery.session && delivery.result.outcome != Outcome::kWorkerLost &&
          now_ns_ - kTick - 15 * kMs > std::max({s.deadline_ns, unblocked_ns_, s.asks_ns}) &&
          delivery.result.run_ns > 0) {
        wrong_ = "something was measured for a session whose time was over";
      }
    }
  }
}

void FarmSimulation::AddEvent(Held& held, const search::SearchEvent& event) {
  held.unit.facts.events.push_back(search::StreamEvent(stream_id_, event));
  held.unit.facts.events.back().id = {random_.Next(), random_.Next()};
}

void FarmSimulation::AddResults(SimSession& session, Held& held) {
  held.results = std::exchange(session.collected, {});
  std::vector<int64_t> attempts;
  for (auto& [attempt, result] : held.results) {
    attempts.push_back(attempt);
    if (result.message.find("its worker was lost") == 0) condemned_.insert(attempt);
    if (result.outcome == Outcome::kOk && result.token == Hash128{}) unconfirmed_.insert(attempt);
    if (result.outcome == Outcome::kWorkerLost) held.lost.insert(attempt);
    if (result.message.find("do not fit") != std::string::npos) held.unfit.insert(attempt);
    if (options_.mistake == Mistake::kNoRefund && result.outcome == Outcome::kWorkerLost) {
      result.outcome = Outcome::kRunCrashed;
    }
    AddEvent(held, search::ResultEvent{attempt, result.outcome,
                                       search::LandscapeNs(std::to_string(attempt)), 0.01});
  }
  if (options_.mistake != Mistake::kCloseWithoutLease) {
    held.unit.changes = farm_->EndsOf(session.id, attempts);
  }
}

void FarmSimulation::EndSession(SimSession& session, Held& held) {
  held.ends = true;
  AddEvent(held, search::LeaveEvent{session.id});
  search_->tuner.Leave(session.id);
  farm_->EndSession(session.id, "it has ended", FarmNs());
  held.unit.changes.push_back(
      db::SetFarmSession{.id = session.id, .state = db::SessionState::kFinished, .reason = "done"});
}

void FarmSimulation::Drive(SimSession& session) {
  if (session.ended || search_busy_ || !session.created || !HasReplayed(session)) return;
  Held held{.session = &session};
  const bool over = now_ns_ >= session.deadline_ns;
  if (!session.member) {
    session.member = true;
    search_->tuner.Join(
        {.member = session.id, .trials = options_.trials, .seed = options_.seed, .tasks = tasks_});
    AddEvent(held, search_->tuner.EventOf(session.id));
  } else if (session.cancelled) {
    EndSession(session, held);
  } else if (!session.collected.empty()) {
    if (random_.Chance(0.5)) return;
    AddResults(session, held);
  } else if (session.verdict) {
    const int64_t number = ComparisonOf(session);
    if (session.verdict->token == Hash128{}) unconfirmed_.insert(number);
    held.compares = true;
    session.verdict.reset();
    held.unit.changes = farm_->EndsOf(session.id, {number});
  } else if (over && options_.mistake != Mistake::kIgnoreDeadline) {
    if (!session.in_flight.empty()) return;
    EndSession(session, held);
  } else if (session.in_flight.size() < 5) {
    held.proposals = search_->tuner.Propose(static_cast<int>(random_.Between(1, 6)), session.id);
    for (const Tuner::Proposal& p : held.proposals) {
      AddEvent(held, Tuner::EventOf(p));
    }
    if (held.proposals.empty()) {
      if (!session.in_flight.empty() || !Compare(session)) return;
      EndSession(session, held);
    }
  } else {
    return;
  }
  Gather(std::move(held));
}

}  // namespace hone::sim
