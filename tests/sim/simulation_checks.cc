#include <algorithm>

#include "fmt/format.h"

#include "tests/sim/farm_simulation.h"

// What must hold of a simulated farm, most of it in the end.
namespace hone::sim {

void FarmSimulation::CheckSuspects(const db::FarmUnit& unit) {
  for (const db::FarmChange& change : unit.changes) {
    if (const auto* start = std::get_if<db::StartFarmLease>(&change)) started_.insert(start->token);
    const auto* end = std::get_if<db::EndFarmLease>(&change);
    if (end != nullptr && end->state == db::LeaseState::kLost && started_.contains(end->token) &&
        std::ranges::none_of(unit.changes, [&](const db::FarmChange& other) {
          const auto* suspect = std::get_if<db::PutFarmSuspect>(&other);
          return suspect != nullptr && suspect->suspect.attempt == asked_.at(end->token).second;
        })) {
      wrong_ = "a worker was lost with what it ran, and nobody is blamed";
    }
    const auto* put = std::get_if<db::PutFarmSuspect>(&change);
    if (put == nullptr) continue;
    // A worker that crashed, or was cut off or asleep for long: but with this candidate running.
    if (std::ranges::none_of(unit.changes, [&](const db::FarmChange& other) {
          const auto* lost = std::get_if<db::EndFarmLease>(&other);
          return lost != nullptr && ran_.contains(lost->token) &&
                 asked_.at(lost->token).second == put->suspect.attempt;
        })) {
      wrong_ = "a candidate is blamed that did not run";
    }
    int& losses = losses_[put->suspect.attempt];
    if (put->suspect.losses <= losses) wrong_ = "what a suspect did before is forgotten";
    losses = put->suspect.losses;
  }
}

std::string FarmSimulation::CheckSession(const SimSession& session) {
  const bool timed = session.deadline_ns != INT64_MAX;
  int64_t paid = 0;
  std::map<int64_t, int> results;
  std::set<int64_t> proposed;
  const std::vector<db::Event> events = log_->EventsOf(stream_id_).value();
  for (const db::Event& event : events) {
    const auto begun = search::EventAs<search::ProposedEvent>(event);
    if (begun && begun->member == session.id && !proposed.insert(begun->attempt).second) {
      return fmt::format("attempt {} was proposed twice", begun->attempt);
    }
    const auto result = search::EventAs<search::ResultEvent>(event);
    if (!result || !proposed.contains(result->attempt)) continue;
    const int64_t attempt = result->attempt;
    if (++results[attempt] > 1) return fmt::format("attempt {} has two results", attempt);
    const bool lost = result->outcome == measure::Outcome::kWorkerLost;
    if (!lost && lost_answers_.contains(attempt)) {
      return fmt::format("attempt {} was lost to infrastructure and paid", attempt);
    }
    paid += lost ? 0 : 1;
    // Also where honed crashed right behind that commit.
    if (lost) lost_answers_.insert(attempt);
  }
  const bool whole = !session.cancelled;
  if (whole && results.size() != proposed.size()) return "an attempt has no result";
  if (paid > options_.trials || (paid != options_.trials && !timed && whole)) {
    return fmt::format("{} trials were used of {}", paid, options_.trials);
  }
  std::map<int64_t, int> done;
  const std::vector<db::FarmLease> leases = store_->LeasesOf(session.id).value();
  for (const db::FarmLease& lease : leases) {
    if (lease.state < db::LeaseState::kDone) {
      return fmt::format("a lease of attempt {}, which has ended, is open", lease.attempt);
    }
    if (lease.state == db::LeaseState::kDone && ++done[lease.attempt] > 1) {
      return fmt::format("attempt {} closed twice", lease.attempt);
    }
  }
  if (!whole) return "";
  for (const int64_t attempt : proposed) {
    const bool unleased = condemned_.contains(attempt) || unfit_.contains(attempt);
    const bool given_up = timed && lost_answers_.contains(attempt);
    // Where honed crashed before that answer's commit, it was measured after all.
    if (done.contains(attempt) == unleased && !given_up && !unconfirmed_.contains(attempt)) {
      return fmt::format("attempt {} was {}", attempt,
                         done.contains(attempt) ? "measured and condemned" : "neither");
    }
  }
  const int64_t comparison = ComparisonOf(session);
  if (options_.doubts && !timed && !done.contains(comparison) &&
      !unconfirmed_.contains(comparison)) {
    return "its finalists were not compared";
  }
  return "";
}

std::string FarmSimulation::CheckLeases() {
  std::map<Hash128, std::string> contents;
  std::map<std::string, int64_t> charges;
  for (const SimSession& session : sessions_) {
    const std::vector<db::FarmLease> leases = store_->LeasesOf(session.id).value();
    for (const db::FarmLease& lease : leases) {
      if (lease.state != db::LeaseState::kDone) continue;
      contents[lease.token] = lease.content;
      charges[session.project] += lease.charge_ns;
    }
  }
  for (const auto& [token, digest] : accepted_) {
    const auto lease = contents.find(token);
    if (lease == contents.end()) return "acknowledged and not in the log: " + token.ToHex();
    if (lease->second != digest) return "acknowledged with other content: " + token.ToHex();
  }
  const db::FarmState left = store_->Load().value();
  for (const db::FarmProject& project : left.projects) {
    if (project.charged_ns != charges[project.project]) {
      return fmt::format("{}: {} ns charged, its leases took {} ns", project.project,
                         project.charged_ns, charges[project.project]);
    }
  }
  return "";
}

std::string FarmSimulation::CheckClients() {
  std::vector<std::pair<int64_t, std::string>> events;
  const std::vector<db::Event> stored = log_->EventsOf(stream_id_).value();
  for (const db::Event& event : stored) events.emplace_back(event.sequence, event.payload);
  for (SimClient& client : clients_) {
    const size_t shown = client.seen.size();
    if (shown > events.size() ||
        !std::equal(client.seen.begin(), client.seen.end(), events.begin())) {
      return "a watcher saw what the log does not have, or in another order";
    }
    // Whatever it missed it gets when it asks again.
    counts_.watched += static_cast<int>(shown);
  }
  return "";
}

std::string FarmSimulation::Check() {
  for (const SimSession& session : sessions_) {
    if (!session.ended) return fmt::format("a session of {} has not ended", session.project);
    if (std::string wrong = CheckSession(session); !wrong.empty()) return wrong;
  }
  if (std::string wrong = CheckLeases(); !wrong.empty()) return wrong;
  if (std::string wrong = CheckClients(); !wrong.empty()) return wrong;
  // No worker could answer the poisonous one, but that a machine slept until its time was over;
  // others are condemned only where crashes met them.
  counts_.condemned = static_cast<int>(condemned_.size());
  const std::vector<db::Event> events = log_->EventsOf(stream_id_).value();
  const auto timed_out = [](const db::Event& event) {
    const auto result = search::EventAs<search::ResultEvent>(event);
    return result && result->attempt == kPoison && result->outcome == measure::Outcome::kRunTimeout;
  };
  if (!condemned_.contains(kPoison) && !lost_answers_.contains(kPoison) &&
      std::ranges::none_of(events, timed_out) &&
      std::ranges::none_of(sessions_, &SimSession::cancelled)) {
    return "the poisonous attempt was not condemned";
  }
  for (const int64_t attempt : condemned_) {
    if (losses_[attempt] < 2) {
      return fmt::format("attempt {} was condemned and lost {} workers", attempt, losses_[attempt]);
    }
  }
  return "";
}

}  // namespace hone::sim
