#include <fmt/format.h>

#include <algorithm>

#include "base/core/random_id.h"
#include "base/status.h"
#include "db/lookup.h"
#include "ir/kind_facts.h"
#include "search/paired_ratio.h"
#include "search/tuning_session.h"

// The end of a session: comparisons of finalists, and what the comparison of whole models adds.
namespace hone::search {

namespace {
constexpr double kWorthwhile = 1.01;  ///< a winner's lower bound must exceed this
constexpr int kFinalRounds = 24, kLeastRounds = 5;
constexpr int kEnoughRounds = 12;      ///< more of them are better spent on more finalists
constexpr double kPrepareNs = 50'000'000;  ///< of one finalist: built again, loaded and checked
constexpr double kComparedShare = 0.8;  ///< of a comparison's time: it also builds and warms up
/// Threads that help a kernel which takes so long pay for the round trip to them.
constexpr double kSurelyPaysNs = 100'000;

/// Lower bound of the interval of the median paired ratio a / b.
double LowerRatio(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  constexpr double kScale = 1e6;
  std::vector<int64_t> ratios;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (b[i] > 0)
      ratios.push_back(
          static_cast<int64_t>(kScale * static_cast<double>(a[i]) / static_cast<double>(b[i])));
  }
  return IntervalOf(std::move(ratios)).low / kScale;
}
}  // namespace

int TuningSession::RoundsFor(const std::vector<uint64_t>& finalists, int task,
                             int tasks_left) const {
  const double left_ns = 1e9 * kComparedShare * SecondsToCompare();
  const TaskSearch& s = tuner_->search(task);
  std::vector<double> medians;
  for (uint64_t id : finalists) medians.push_back(s.MedianNs(id));
  std::ranges::sort(medians);
  // Those that screened fastest may have met a lucky moment: they count like the middle one.
  double round_ns = 1;
  for (double ns : medians) round_ns += std::max(ns, medians[medians.size() / 2]);
  double most = kFinalRounds;
  // The runner kills what takes longer. Each is run once before the first round.
  if (options_.run_seconds > 0)
    most = std::min(most, 1e9 * kComparedShare * options_.run_seconds / round_ns - 1);
  if (kLeastRounds * round_ns > left_ns || kLeastRounds > most) return 0;
  const double rounds = (left_ns / std::max(1, tasks_left) -
                         kPrepareNs * static_cast<double>(finalists.size())) /
                        round_ns;
  return static_cast<int>(std::clamp(rounds, double{kLeastRounds}, most));
}

absl::Status TuningSession::CompareTask(int task, int tasks_left) {
  auto lock = Lock();
  const TaskSearch& s = tuner_->search(task);
  int whole = TaskSearch::kMostFinalists;
  std::vector<uint64_t> finalists = s.Finalists(whole);
  while (whole > TaskSearch::kLeastFinalists &&
         RoundsFor(finalists, task, tasks_left) < kEnoughRounds)
    finalists = s.Finalists(--whole);
  if (finalists.empty()) return absl::OkStatus();
  // All in turns, so that a drift of the machine meets all alike and the samples pair.
  std::vector<measure::MeasureInput> inputs;
  for (uint64_t id : finalists) {
    HONE_ASSIGN_OR_RETURN(schedule::Trace t, s.space().TraceOf(id));
    inputs.push_back(InputOf({0, task, id, Proposer::kModel, schedule::ToText(t)},
                             measure::MeasureKind::kFinal));
    inputs.back().incumbent_ns = 0;
  }
  const int rounds = RoundsFor(finalists, task, tasks_left);
  lock.unlock();
  if (rounds == 0) return absl::OkStatus();
  return CompareInputs(task, inputs, rounds);
}

absl::Status TuningSession::CompareInputs(int task,
                                          const std::vector<measure::MeasureInput>& inputs,
                                          int rounds) {
  constexpr size_t kDefault = 0;  // as Finalists has it
  const std::vector<measure::ComparedTrace> compared = measurer_.Compare(inputs, rounds);
  if (compared.size() != inputs.size() || compared[kDefault].samples_ns.empty())
    return absl::OkStatus();
  const double default_ns = IntervalOf(compared[kDefault].samples_ns).median;
  size_t winner = kDefault;
  double best = default_ns;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (k == kDefault || compared[k].samples_ns.empty()) continue;
    const double median = IntervalOf(compared[k].samples_ns).median;
    if (median < best &&
        LowerRatio(compared[kDefault].samples_ns, compared[k].samples_ns) > kWorthwhile)
      best = median, winner = k;
  }
  const auto all = shared_->LockAll();
  const int local = LocalOf(task);
  TaskVerdict& v = verdicts_[static_cast<size_t>(local)];
  v.compared = true;
  v.replaced = winner != kDefault;
  v.default_ns = default_ns;
  v.best_ns = best;
  tuner_->Compared(task, default_ns, best);
  v.trace = inputs[winner].trace;
  v.default_samples = compared[kDefault].samples_ns;
  v.best_samples = compared[winner].samples_ns;
  v.noisy = compared[winner].noisy;
  db::Batch batch;
  batch.records.push_back(MakeRecord(task, v.trace, v.best_samples, db::Rigor::kVerified, v.noisy));
  const TaskEnd end = v.replaced ? TaskEnd::kWon : TaskEnd::kLost;
  batch.events.push_back(MakeEvent(VerdictEvent{local, end, default_ns, best}));
  batch.events.push_back(StreamEvent(shared_->stream, ComparedEvent{task, default_ns, best}));
  return CommitResults(batch);
}

absl::Status TuningSession::ReplayVerdict(const VerdictEvent& event) {
  if (event.task >= static_cast<int>(verdicts_.size())) {
    return absl::DataLossError(
        fmt::format("the log's event `verdict {}` does not fit this session", event.Text()));
  }
  TaskVerdict& v = verdicts_[static_cast<size_t>(event.task)];
  v.compared = true;
  v.replaced = event.end == TaskEnd::kWon || event.end == TaskEnd::kConfirmed;
  v.put_back = event.end == TaskEnd::kPutBack;
  v.default_ns = event.default_ns;
  v.best_ns = event.best_ns;
  return absl::OkStatus();
}

absl::Status TuningSession::FinalComparisons() {
  // The tasks with the most to win first, while the budget lasts.
  auto lock = Lock();
  std::vector<int> order;
  for (size_t k = 0; k < places_.size(); ++k) {
    const int i = places_[k];
    if (!verdicts_[k].compared && tuner_->search(i).best() && tuner_->search(i).trials() > 1)
      order.push_back(i);
  }
  auto gain = [&](int i) {
    const TaskSearch& search = tuner_->search(i);
    return tuner_->task(i).weight() * (search.default_ns() - search.best_ns());
  };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return gain(a) > gain(b); });
  lock.unlock();
  for (size_t k = 0; k < order.size(); ++k) {
    if (Interrupted()) break;
    if (SecondsToCompare() <= 0) break;
    TellSecondsLeft();
    HONE_RETURN_IF_ERROR(CompareTask(order[k], static_cast<int>(order.size() - k)));
  }
  return ChooseThreads();
}

absl::Status TuningSession::ChooseThreads() {
  if (!options_.choose_threads || options_.target.threads == 1) return absl::OkStatus();
  for (size_t local = 0; local < verdicts_.size(); ++local) {
    if (Interrupted() || SecondsToCompare() <= 0) break;
    const TaskVerdict& v = verdicts_[local];
    if (!v.compared || v.put_back || v.trace.empty() || v.best_ns > kSurelyPaysNs) continue;
    HONE_RETURN_IF_ERROR(ChooseThreadsOf(local));
  }
  return absl::OkStatus();
}

absl::Status TuningSession::ChooseThreadsOf(size_t local) {
  const TaskVerdict& v = verdicts_[local];
  const int task = places_[local];
  std::vector<measure::MeasureInput> inputs;
  {
    const auto lock = Lock();
    inputs.push_back(
        InputOf({0, task, 0, Proposer::kModel, v.trace}, measure::MeasureKind::kFinal));
  }
  inputs[0].incumbent_ns = 0;
  for (int threads = 1; threads < options_.target.threads; threads *= 2) {
    inputs.push_back(inputs[0]);
    inputs.back().threads = threads;
  }
  const std::vector<measure::ComparedTrace> compared = measurer_.Compare(inputs, kFinalRounds);
  if (compared.size() != inputs.size()) return absl::OkStatus();
  for (size_t k = 1; k < inputs.size(); ++k) {
    const std::vector<int64_t>& samples = compared[k].samples_ns;
    if (samples.empty() || compared[0].samples_ns.empty()) continue;
    // Beside other programs fewer threads always look better.
    if (compared[0].noisy || compared[k].noisy) continue;
    if (RatioOf(compared[0].samples_ns, samples).median < 1) continue;
    db::Batch batch;
    batch.records.push_back(
        MakeRecord(task, v.trace, samples, db::Rigor::kScreened, compared[k].noisy));
    std::string& target = batch.records.back().key.target;
    target = db::WithThreads(target, inputs[k].threads);
    return CommitResults(batch);
  }
  return absl::OkStatus();
}

absl::Status TuningSession::RestoreCompared() {
  return db_.ScanRecords({.session = id_}, [this](const db::RankedRecord& ranked) {
    const db::TuningRecord& r = ranked.record;
    if (ranked.merged || r.rigor != db::Rigor::kVerified) return absl::OkStatus();
    for (size_t i = 0; i < hashes_.size(); ++i) {
      TaskVerdict& v = verdicts_[i];
      if (hashes_[i] != r.key.workload || !v.compared || v.put_back) continue;
      v.trace = r.trace;
      v.best_samples.clear();
      for (const double ns : r.samples_ns) v.best_samples.push_back(static_cast<int64_t>(ns));
      if (!v.replaced) v.default_samples = v.best_samples;
      v.noisy = r.noisy;
    }
    return absl::OkStatus();
  });
}

absl::Status TuningSession::AddVerdict(db::ModelVerdict verdict,
                                       const std::vector<int>& confirmed) {
  using Subject = db::ModelVerdict::Subject;
  // Those say themselves which kernels the model has when it runs as before.
  if (verdict.subject != Subject::kBatch && verdict.subject != Subject::kCascades)
    verdict.model = model_;
  verdict.target = options_.target.text;
  verdict.device_class = options_.device.device_class;
  verdict.accuracy = options_.accuracy;
  verdict.measurement_policy = ir::VersionsOf(options_.target.text).measurement_policy;
  verdict.session = id_;
  db::Batch batch;
  batch.events.push_back(db::EventOf(verdict));
  const auto tell = [&](int task, TaskEnd end) {
    const TaskVerdict& v = verdicts_[static_cast<size_t>(task)];
    batch.events.push_back(MakeEvent(VerdictEvent{task, end, v.default_ns, v.best_ns}));
  };
  for (size_t i = 0; i < hashes_.size(); ++i) {
    if (std::ranges::count(verdict.put_back, hashes_[i]) == 0) continue;
    TaskVerdict& v = verdicts_[i];
    v.put_back = true;
    v.replaced = false;
    tell(static_cast<int>(i), TaskEnd::kPutBack);
  }
  for (const int task : confirmed) {
    HONE_CHECK(task >= 0 && task < static_cast<int>(verdicts_.size()));
    const TaskVerdict& v = verdicts_[static_cast<size_t>(task)];
    if (v.best_samples.empty()) continue;  // nothing was compared: it stays what it is
    batch.records.push_back(MakeRecord(places_[static_cast<size_t>(task)], v.trace, v.best_samples,
                                       db::Rigor::kConfirmed, v.noisy));
    tell(task, TaskEnd::kConfirmed);
  }
  return CommitResults(batch);
}

Hash128 ModelHashOf(const std::vector<TuningTask>& tasks) {
  std::vector<std::pair<Hash128, int64_t>> counts;
  for (const TuningTask& task : tasks) counts.emplace_back(task.hash, task.count);
  return db::ModelHash(std::move(counts));
}

}  // namespace hone::search
