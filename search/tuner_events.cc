#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <sstream>

#include "base/core/check.h"
#include "base/status.h"
#include "ir/text.h"
#include "search/tuner.h"

// Members of a Tuner, and its events applied again.
namespace hone::search {
namespace {

absl::Status DoesNotFit(const std::string& type, const std::string& payload) {
  return absl::DataLossError(
      fmt::format("the log's event `{} {}` does not fit this search", type, payload));
}

}  // namespace

std::shared_ptr<const schedule::Space> Tuner::MakeSpace(const TuningTask& task) const {
  return std::make_shared<schedule::Space>(*task.workload, target_, options_.accuracy);
}

int Tuner::AddTask(TuningTask task, uint64_t seed) {
  std::shared_ptr<const schedule::Space> space = std::exchange(task.space, nullptr);
  if (!space) space = MakeSpace(task);
  searches_.push_back(std::make_unique<TaskSearch>(std::move(space), seed ^ task.hash.low));
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

std::string Tuner::ComparedEvent(int task, double default_ns, double best_ns) {
  return fmt::format("{} {} {}", task, default_ns, best_ns);
}

// Member, trials, seed, first attempt and, where there is any, what was charged before; then of
// each task: hash, count, flop, bound, and the hash of its Space.
std::string Tuner::MemberEvent(const Hash128& id) const {
  const Member& member = members_.at(id);
  std::string text =
      fmt::format("{} {} {} {}", id.ToHex(), member.trials, member.seed, member.first_attempt);
  if (member.charged_before > 0) text += fmt::format(" {}", member.charged_before);
  for (const auto& [i, count] : member.tasks) {
    const TuningTask& t = tasks_[static_cast<size_t>(i)];
    text += fmt::format("\n{} {} {} {} {}", t.hash.ToHex(), count, t.flop, t.bound_ns,
                        search(i).space().hash());
  }
  return text;
}

absl::Status Tuner::ReplayMember(const std::string& payload, const WorkloadOf& workload_of) {
  std::istringstream lines(payload);
  std::string line, id;
  Joining joining;
  std::getline(lines, line);
  std::istringstream first(line);
  if (!(first >> id >> joining.trials >> joining.seed >> joining.first_attempt))
    return DoesNotFit("member", payload);
  if (!(first >> joining.charged)) joining.charged = 0;
  const auto member = Hash128::FromHex(id);
  if (!member || HasMember(*member)) return DoesNotFit("member", payload);
  joining.member = *member;
  TuningTask task;
  std::string space;
  std::vector<std::string> spaces;
  while (lines >> id >> task.count >> task.flop >> task.bound_ns >> space) {
    spaces.push_back(space);
    const auto hash = Hash128::FromHex(id);
    if (!hash || !workload_of) return DoesNotFit("member", payload);
    task.hash = *hash;
    HONE_ASSIGN_OR_RETURN(task.workload, workload_of(*hash));
    joining.tasks.push_back(task);
  }
  const std::vector<int> places = Join(std::move(joining));
  for (size_t i = 0; i < places.size(); ++i) {
    if (fmt::format("{}", search(places[i]).space().hash()) == spaces[i]) continue;
    return absl::FailedPreconditionError("the search was one of another Hone, its Spaces differ");
  }
  return absl::OkStatus();
}

absl::Status Tuner::ReplayProposed(const std::string& payload) {
  long long attempt = 0;
  int task = 0;
  unsigned long long id = 0;
  char word[64] = {}, hex[64] = {};
  const int fields =
      std::sscanf(payload.c_str(), "%lld %d %llu %63s %63s", &attempt, &task, &id, word, hex);
  if (fields < 4 || task < 0 || task >= num_tasks() || !searching(task) ||
      id >= searches_[task]->space().product()) {
    return DoesNotFit("proposed", payload);
  }
  auto proposer = ParseProposer(word);
  if (!proposer) return absl::DataLossError(fmt::format("unknown proposer {}", word));
  const std::optional<Hash128> member = fields == 5 ? Hash128::FromHex(hex) : kAlone;
  if (!member || !HasMember(*member)) return DoesNotFit("proposed", payload);
  searches_[task]->MarkProposed(id, *proposer);
  last_batch_[task] = attempt;
  // Nearly all of them were answered: the Trace of one that was not is made when it is asked for.
  if (open_.emplace(attempt, Proposal{attempt, task, id, *proposer, "", *member, ""}).second) {
    ++in_flight_[task];
    ++members_.at(*member).charged;
  }
  attempts_ = std::max<int64_t>(attempts_, attempt + 1);
  return absl::OkStatus();
}

absl::Status Tuner::Replay(const std::string& type, const std::string& payload,
                           const WorkloadOf& workload_of) {
  if (type == "proposed") return ReplayProposed(payload);
  if (type == "member") return ReplayMember(payload, workload_of);
  if (type == "leave") {
    const auto member = Hash128::FromHex(payload);
    if (!member) return DoesNotFit(type, payload);
    Leave(*member);
  } else if (type == "imported") {
    int task = 0;
    unsigned long long id = 0;
    if (std::sscanf(payload.c_str(), "%d %llu", &task, &id) != 2 || task < 0 ||
        task >= num_tasks() || !searching(task)) {
      return DoesNotFit(type, payload);
    }
    Import(task, id);
  } else if (type == "compared") {
    int task = 0;
    double default_ns = 0, best_ns = 0;
    if (std::sscanf(payload.c_str(), "%d %lf %lf", &task, &default_ns, &best_ns) != 3 || task < 0 ||
        task >= num_tasks()) {
      return DoesNotFit(type, payload);
    }
    Compared(task, default_ns, best_ns);
  } else if (type == "result") {
    long long attempt = 0;
    char word[64] = {};
    double ns = 0, cost = 0;
    if (std::sscanf(payload.c_str(), "%lld %63s %lf %lf", &attempt, word, &ns, &cost) != 4)
      return DoesNotFit(type, payload);
    auto outcome = measure::ParseOutcome(word);
    if (!outcome) return absl::DataLossError(fmt::format("unknown outcome {}", word));
    Result(attempt, *outcome, ns, cost);
  }
  return absl::OkStatus();
}

}  // namespace hone::search
