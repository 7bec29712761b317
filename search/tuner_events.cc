#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/core/check.h"
#include "base/status.h"
#include "ir/text.h"
#include "search/tuner.h"

// Members of a Tuner, and its events applied again.
namespace hone::search {
namespace {

template <typename T>
absl::Status DoesNotFit(const T& event) {
  return absl::DataLossError(
      fmt::format("the log's event `{} {}` does not fit this search", T::kType, event.Text()));
}

}  // namespace

std::shared_ptr<const schedule::Space> Tuner::MakeSpace(const TuningTask& task) const {
  return std::make_shared<schedule::Space>(*task.workload, target_, options_.accuracy);
}

int Tuner::AddTask(TuningTask task, uint64_t seed) {
  std::shared_ptr<const schedule::Space> space = std::exchange(task.space, nullptr);
  if (!space) space = MakeSpace(task);
  searches_.push_back(
      std::make_unique<TaskSearch>(std::move(space), seed ^ task.hash.low, options_.min_stale,
                                   options_.evolve));
  task.count = 0;
  forms_.push_back(db::FormOf(ir::ToText(*task.workload)));
  tasks_.push_back(std::move(task));
  cost_seconds_.push_back(0.05);
  last_batch_.push_back(-1);
  in_flight_.push_back(0);
  return num_tasks() - 1;
}

std::vector<int> Tuner::Join(Joining joining) {
  HONE_CHECK(!HasMember(joining.member)) << "a member joins once";
  Member& member = members_[joining.member];
  const int before = num_tasks();
  member = {.trials = joining.trials,
            .first_attempt = joining.first_attempt,
            .seed = joining.seed,
            .charged = joining.charged,
            .charged_before = joining.charged,
            .tasks = {},
            .tasks_before = before};
  attempts_ = std::max(attempts_, joining.first_attempt);
  std::vector<int> places;
  for (TuningTask& task : joining.tasks) {
    const int count = task.count;
    // Local requests may hold one Workload twice: only what another member brought is shared.
    std::optional<int> place = joining.member == kAlone ? std::nullopt : TaskOf(task.hash);
    if (!place) place = AddTask(std::move(task), joining.seed);
    tasks_[static_cast<size_t>(*place)].count += count;
    member.tasks.emplace_back(*place, count);
    places.push_back(*place);
  }
  if (num_tasks() > before) FindSiblings();
  return places;
}

void Tuner::UndoJoin(const Hash128& id) {
  const Member member = std::move(members_.at(id));
  HONE_CHECK(member.charged == member.charged_before) << "what has proposed leaves";
  members_.erase(id);
  for (const auto& [task, count] : member.tasks) tasks_[static_cast<size_t>(task)].count -= count;
  const bool added = num_tasks() > member.tasks_before;
  while (num_tasks() > member.tasks_before) {
    HONE_CHECK(tasks_.back().count == 0) << "somebody has joined since";
    searches_.pop_back();
    forms_.pop_back();
    tasks_.pop_back();
    cost_seconds_.pop_back();
    last_batch_.pop_back();
    in_flight_.pop_back();
  }
  if (added) FindSiblings();
}

void Tuner::Leave(const Hash128& id) {
  const auto found = members_.find(id);
  if (found == members_.end()) return;
  std::vector<int64_t> open;
  for (const auto& [attempt, p] : open_) {
    if (p.member == id) open.push_back(attempt);
  }
  for (const int64_t attempt : open) {
    const Proposal p = open_.at(attempt);
    open_.erase(attempt);
    --in_flight_[static_cast<size_t>(p.task)];
    search(p.task).Report(p.id, measure::Outcome::kWorkerLost, 0);
  }
  const Member member = std::move(found->second);
  members_.erase(found);
  std::set<int> wanted;
  for (const auto& [other, m] : members_) {
    for (const auto& [task, count] : m.tasks) wanted.insert(task);
  }
  bool ended = false;
  for (const auto& [task, count] : member.tasks) {
    const auto i = static_cast<size_t>(task);
    tasks_[i].count -= count;
    if (wanted.contains(task) || !searches_[i]) continue;
    searches_[i] = nullptr;
    tasks_[i].workload = nullptr;
    forms_[i] = {};
    ended = true;
  }
  if (ended) FindSiblings();
}

std::vector<Hash128> Tuner::Members() const {
  std::vector<Hash128> ids;
  for (const auto& [id, member] : members_) ids.push_back(id);
  return ids;
}

std::vector<int> Tuner::TasksOf(const Hash128& id) const {
  std::vector<int> places;
  const auto member = members_.find(id);
  if (member == members_.end()) return places;
  for (const auto& [task, count] : member->second.tasks) places.push_back(task);
  return places;
}

int64_t Tuner::charged(const Hash128& id) const {
  const auto member = members_.find(id);
  return member == members_.end() ? 0 : member->second.charged;
}

MemberEvent Tuner::EventOf(const Hash128& id) const {
  const Member& member = members_.at(id);
  MemberEvent event{id, member.trials, member.seed, member.first_attempt, member.charged_before,
                    {}};
  for (const auto& [i, count] : member.tasks) {
    const TuningTask& t = tasks_[static_cast<size_t>(i)];
    event.tasks.push_back({t.hash, count, t.flop, t.bound_ns, search(i).space().hash()});
  }
  return event;
}

absl::Status Tuner::ReplayMember(const MemberEvent& event, const WorkloadOf& workload_of) {
  if (HasMember(event.member) || !workload_of) return DoesNotFit(event);
  Joining joining{.member = event.member,
                  .trials = event.trials,
                  .seed = event.seed,
                  .first_attempt = event.first_attempt,
                  .charged = event.charged,
                  .tasks = {}};
  for (const MemberEvent::Task& t : event.tasks) {
    TuningTask& task = joining.tasks.emplace_back();
    HONE_ASSIGN_OR_RETURN(task.workload, workload_of(t.workload));
    task.hash = t.workload;
    task.count = t.count;
    task.flop = t.flop;
    task.bound_ns = t.bound_ns;
  }
  const std::vector<int> places = Join(std::move(joining));
  for (size_t i = 0; i < places.size(); ++i) {
    if (search(places[i]).space().hash() == event.tasks[i].space) continue;
    return absl::FailedPreconditionError("the search was one of another Hone, its Spaces differ");
  }
  return absl::OkStatus();
}

absl::Status Tuner::ReplayProposed(const ProposedEvent& e) {
  if (e.task >= num_tasks() || !searching(e.task) ||
      e.point >= searches_[e.task]->space().product() || !HasMember(e.member)) {
    return DoesNotFit(e);
  }
  searches_[e.task]->MarkProposed(e.point, e.proposer);
  last_batch_[e.task] = e.attempt;
  // Nearly all of them were answered: the Trace of one that was not is made when it is asked for.
  if (open_.emplace(e.attempt, Proposal{e.attempt, e.task, e.point, e.proposer, "", e.member, ""})
          .second) {
    ++in_flight_[e.task];
    ++members_.at(e.member).charged;
  }
  attempts_ = std::max<int64_t>(attempts_, e.attempt + 1);
  return absl::OkStatus();
}

absl::Status Tuner::Replay(const SearchEvent& event, const WorkloadOf& workload_of) {
  if (const auto* const proposed = std::get_if<ProposedEvent>(&event))
    return ReplayProposed(*proposed);
  if (const auto* const member = std::get_if<MemberEvent>(&event))
    return ReplayMember(*member, workload_of);
  if (const auto* const leave = std::get_if<LeaveEvent>(&event)) {
    Leave(leave->member);
  } else if (const auto* const imported = std::get_if<ImportedEvent>(&event)) {
    if (imported->task >= num_tasks() || !searching(imported->task)) return DoesNotFit(*imported);
    Import(imported->task, imported->point);
  } else if (const auto* const compared = std::get_if<ComparedEvent>(&event)) {
    if (compared->task >= num_tasks()) return DoesNotFit(*compared);
    Compared(compared->task, compared->default_ns, compared->best_ns);
  } else if (const auto* const result = std::get_if<ResultEvent>(&event)) {
    Result(result->attempt, result->outcome, result->median_ns, result->cost_seconds,
           {result->part_ns, result->part == 1});
  }
  return absl::OkStatus();
}

}  // namespace hone::search
