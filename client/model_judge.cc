#include "client/model_judge.h"

#include <algorithm>

#include "fmt/format.h"

#include "base/status.h"
#include "client/log_trace_source.h"
#include "client/model_inputs.h"
#include "client/model_loader.h"
#include "client/open_log.h"
#include "ir/kind_name.h"
#include "measure/device.h"

namespace hone::client {
namespace {

std::vector<std::string> HashesOf(const search::TuningSession& session) {
  std::vector<std::string> hashes;
  for (int i = 0; i < session.tuner().num_tasks(); ++i) {
    hashes.push_back(session.tuner().task(i).hash.ToHex());
  }
  return hashes;
}

/// What the session's comparisons of finalists chose, by workload hash.
std::map<std::string, std::string> WinnersOf(const search::TuningSession& session) {
  std::map<std::string, std::string> traces;
  const std::vector<std::string> hashes = HashesOf(session);
  for (size_t i = 0; i < hashes.size(); ++i) {
    const search::TaskVerdict& v = session.verdicts()[i];
    if (v.replaced && !v.trace.empty()) traces[hashes[i]] = v.trace;
  }
  return traces;
}

/// How much of the device others used since `watch` began to look, where that disturbs.
double Disturbance(measure::OthersWatch* watch) {
  const double others = watch == nullptr ? 0 : watch->SinceLast().value_or(0);
  return others > measure::OthersWatch::kDisturbing ? others : 0;
}

compiler::BatchRun OtherBatch(compiler::BatchRun batch) {
  using compiler::BatchRun;
  return batch == BatchRun::kEach ? BatchRun::kTogether : BatchRun::kEach;
}

std::vector<Hash128> Hashes(const std::set<std::string>& hexes) {
  std::vector<Hash128> hashes;
  for (const std::string& hex : hexes) hashes.push_back(Hash128::FromHex(hex).value_or(Hash128{}));
  return hashes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TimedModel>> ModelJudge::Make(compiler::TraceSource& traces,
                                                             const Way& way) {
  const Arguments& arguments = context_.arguments;
  const MonotonicClock& clock = *context_.environment.clock;
  const std::string path = arguments.Text("MODEL");
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, ImportModel(arguments, path));
  HONE_ASSIGN_OR_RETURN(const NamedTensors inputs,
                        ReadOrDrawInputs(arguments, path, InputsOf(graph), context_.err));
  measure::BuilderClient builder(LocalBuilder(arguments, context_.environment), clock);
  return TimedModel::Create(
      std::move(graph),
      {.target = options_.target,
       .device_class = options_.device_class,
       .batch = way.batch,
       .branches = way.branches,
       .cascades =
           way.cascades == compiler::CascadeRun::kAuto ? options_.way.chains.run : way.cascades},
      traces, builder, inputs, clock, way.times);
}

void ModelJudge::MeasureDefault() {
  const MonotonicClock& clock = *context_.environment.clock;
  const int64_t start_ns = clock.NowNs();
  compiler::DefaultTraceSource defaults;
  const auto measure = [&]() -> absl::Status {
    HONE_ASSIGN_OR_RETURN(by_default_, Make(defaults, {options_.way.batch}));
    expected_seconds_ = 1.2 * static_cast<double>(clock.NowNs() - start_ns) * 1e-9;
    HONE_RETURN_IF_ERROR(RunInTurns({by_default_.get()}, 0.1, options_.interrupted, clock));
    judged_.verdict.default_ns = by_default_->MedianNs();
    // Five rounds of two models at least, and what else the end of a session does.
    expected_seconds_ += std::max(options_.seconds, 12e-9 * judged_.verdict.default_ns) + 0.2;
    // Two models more, compared once.
    const int ways = (options_.way.together.empty() ? 0 : 1) + (HasBranches() ? 1 : 0) +
                     (options_.way.chains.apart.empty() ? 0 : 1) +
                     (options_.way.other_chains.apart.empty() ? 0 : 1);
    seconds_for_ways_ = 1.5 * ways * expected_seconds_;
    expected_seconds_ += seconds_for_ways_;
    return absl::OkStatus();
  };
  if (const absl::Status status = measure(); !status.ok()) {
    by_default_.reset();
    judged_.skipped =
        fmt::format("the model does not run with default schedules: {}", StatusMessage(status));
  }
}

absl::Status ModelJudge::Turns(const std::vector<TimedModel*>& models) {
  const MonotonicClock& clock = *context_.environment.clock;
  const auto others = WatchOthers();
  HONE_RETURN_IF_ERROR(RunInTurns(models, options_.seconds, options_.interrupted, clock));
  judged_.noisy_cpus = std::max(judged_.noisy_cpus, Disturbance(others.get()));
  return absl::OkStatus();
}

std::unique_ptr<measure::OthersWatch> ModelJudge::WatchOthers() const {
  return measure::WatchOthersOf(fmt::format("{}:0", ir::KindNameOf(options_.target)),
                                *context_.environment.clock);
}

absl::Status ModelJudge::Judge(search::TuningSession& session) {
  if (!by_default_) return absl::OkStatus();
  HONE_RETURN_IF_ERROR(JudgeModel(session));
  const TunedWay& way = options_.way;
  HONE_RETURN_IF_ERROR(JudgeCascades(session, way.batch, way.chains, judged_.cascades));
  HONE_RETURN_IF_ERROR(
      JudgeCascades(session, OtherBatch(way.batch), way.other_chains, other_cascades_));
  HONE_RETURN_IF_ERROR(JudgeBatch(session));
  return JudgeBranches(session);
}

absl::Status ModelJudge::JudgeModel(search::TuningSession& session) {
  if (session.SecondsLeft() <= 0) {
    judged_.skipped = "no time was left for it";
    return absl::OkStatus();
  }
  JudgedKernels judged;
  if (const absl::Status compared = Compare(session, judged); !compared.ok()) {
    judged_.skipped = StatusMessage(compared);
    return absl::OkStatus();
  }
  // What other programs disturbed decides nothing.
  if (!judged_.skipped.empty() || judged_.noisy_cpus > 0) return absl::OkStatus();
  db::ModelVerdict& verdict = judged_.verdict;
  verdict.keeps_defaults = verdict.ratio_low <= 1;
  verdict.tuned = Hashes(judged.Tuned());
  verdict.put_back = Hashes(judged.put_back());
  // Nothing is confirmed by a model that is not faster.
  const std::vector<int> confirmed = verdict.keeps_defaults
                                         ? std::vector<int>()
                                         : judged.Confirmed(HashesOf(session), session.verdicts());
  return session.AddVerdict(verdict, confirmed);
}

absl::Status ModelJudge::JudgeBatch(search::TuningSession& session) {
  if (options_.way.together.empty()) return absl::OkStatus();
  if (session.SecondsLeft() <= 0) {
    judged_.batch_skipped = "no time was left for it";
    return absl::OkStatus();
  }
  using compiler::BatchRun;
  const auto way_of = [&](BatchRun run) { return Way{.batch = run, .cascades = CascadesOf(run)}; };
  absl::StatusOr<db::ModelVerdict> compared =
      CompareWays(way_of(BatchRun::kTogether), way_of(BatchRun::kEach));
  if (!compared.ok()) {
    judged_.batch_skipped = StatusMessage(compared.status());
    return absl::OkStatus();
  }
  compared->model = db::ModelHash(options_.way.together);
  compared->subject = db::ModelVerdict::Subject::kBatch;
  // Where neither is surely faster it stays as it is.
  const bool stays_together = options_.way.batch == BatchRun::kTogether;
  compared->keeps_defaults = stays_together ? compared->ratio_low <= 1 : compared->ratio_high < 1;
  if (compared->keeps_defaults != stays_together) judged_.cascades = other_cascades_;
  judged_.batch = *std::move(compared);
  return session.AddVerdict(*judged_.batch, {});
}

absl::Status ModelJudge::JudgeBranches(search::TuningSession& session) {
  if (!HasBranches()) return absl::OkStatus();
  if (session.SecondsLeft() <= 0) {
    judged_.branches_skipped = "no time was left for it";
    return absl::OkStatus();
  }
  using compiler::BranchRun;
  Way in_turn{options_.way.batch, BranchRun::kInTurn, TimedModel::Times::kWhole};
  Way beside{options_.way.batch, BranchRun::kBeside, TimedModel::Times::kWhole};
  absl::StatusOr<db::ModelVerdict> compared = CompareWays(in_turn, beside);
  if (!compared.ok()) {
    judged_.branches_skipped = StatusMessage(compared.status());
    return absl::OkStatus();
  }
  compared->subject = db::ModelVerdict::Subject::kBranches;
  compared->keeps_defaults = compared->ratio_low <= 1;
  judged_.branches = *std::move(compared);
  return session.AddVerdict(*judged_.branches, {});
}

absl::Status ModelJudge::JudgeCascades(search::TuningSession& session, compiler::BatchRun batch,
                                       const TunedWay::Chains& chains,
                                       std::optional<db::ModelVerdict>& verdict) {
  if (chains.apart.empty()) return absl::OkStatus();
  if (session.SecondsLeft() <= 0) {
    judged_.cascades_skipped = "no time was left for it";
    return absl::OkStatus();
  }
  using compiler::CascadeRun;
  absl::StatusOr<db::ModelVerdict> compared =
      CompareWays({.batch = batch, .cascades = CascadeRun::kOff},
                  {.batch = batch, .cascades = CascadeRun::kOn});
  if (!compared.ok()) {
    judged_.cascades_skipped = StatusMessage(compared.status());
    return absl::OkStatus();
  }
  compared->model = db::ModelHash(chains.apart);
  compared->subject = db::ModelVerdict::Subject::kCascades;
  // Where neither is surely faster it stays as it is.
  const bool stays_apart = chains.run != CascadeRun::kOn;
  compared->keeps_defaults = stays_apart ? compared->ratio_low <= 1 : compared->ratio_high < 1;
  verdict = *std::move(compared);
  return session.AddVerdict(*verdict, {});
}

compiler::CascadeRun ModelJudge::CascadesOf(compiler::BatchRun batch) const {
  const bool now = batch == options_.way.batch;
  const std::optional<db::ModelVerdict>& found = now ? judged_.cascades : other_cascades_;
  if (!found) return now ? options_.way.chains.run : options_.way.other_chains.run;
  return found->keeps_defaults ? compiler::CascadeRun::kOff : compiler::CascadeRun::kOn;
}

absl::StatusOr<db::ModelVerdict> ModelJudge::CompareWays(const Way& first, const Way& second) {
  HONE_ASSIGN_OR_RETURN(auto log, OpenUserLog(options_.log_path, {}));
  HONE_ASSIGN_OR_RETURN(
      const auto source,
      LogTraceSource::Create(
          std::move(log), {.device_class = options_.device_class, .accuracy = options_.accuracy}));
  HONE_ASSIGN_OR_RETURN(const auto a, Make(*source, first));
  HONE_ASSIGN_OR_RETURN(const auto b, Make(*source, second));
  const MonotonicClock& clock = *context_.environment.clock;
  const auto others = WatchOthers();
  HONE_RETURN_IF_ERROR(
      RunInTurns({a.get(), b.get()}, options_.seconds, options_.interrupted, clock));
  if (const double disturbing = Disturbance(others.get()); disturbing > 0) {
    return absl::UnavailableError(
        fmt::format("other programs used {:.1f} CPUs meanwhile", disturbing));
  }
  const PairedRatio ratio = RatioOf(a->samples_ns(), b->samples_ns());
  return db::ModelVerdict{.default_ns = a->MedianNs(),
                          .tuned_ns = b->MedianNs(),
                          .ratio = ratio.median,
                          .ratio_low = ratio.low,
                          .ratio_high = ratio.high,
                          .rounds = static_cast<int64_t>(b->samples_ns().size())};
}

absl::Status ModelJudge::Compare(const search::TuningSession& session, JudgedKernels& judged) {
  HONE_ASSIGN_OR_RETURN(auto log, OpenUserLog(options_.log_path, {}));
  HONE_ASSIGN_OR_RETURN(
      const auto source,
      LogTraceSource::Create(
          std::move(log), {.device_class = options_.device_class, .accuracy = options_.accuracy}));
  WithWinners winners(*source, WinnersOf(session));
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<TimedModel> tuned, Make(winners, {options_.way.batch}));
  std::map<std::string, std::string> changed;
  for (const std::string& hash : ChangedKernels(*by_default_, *tuned))
    changed[hash] = tuned->traces().at(hash);
  if (changed.empty()) {
    judged_.skipped = "every kernel keeps its default schedule";
    return absl::OkStatus();
  }
  HONE_RETURN_IF_ERROR(Turns({by_default_.get(), tuned.get()}));
  judged.Compared(std::move(changed), LosingKernels(*by_default_, *tuned));
  // Time was kept for one comparison; what another one would have to confirm waits for more, and
  // stays suspect until then.
  const auto may_go_on = [&] {
    return !judged.suspects().empty() && judged_.noisy_cpus == 0 &&
           session.SecondsLeft() >= options_.seconds + seconds_for_ways_;
  };
  if (may_go_on()) {
    // Among many kernels one loses by chance: it has to lose twice.
    HONE_RETURN_IF_ERROR(Turns({by_default_.get(), tuned.get()}));
    judged.ComparedAgain(LosingKernels(*by_default_, *tuned));
    if (may_go_on()) HONE_RETURN_IF_ERROR(CompareWithout(judged, winners, tuned));
  }
  return Decide(session, *tuned);
}

absl::Status ModelJudge::Decide(const search::TuningSession& session, TimedModel& tuned) {
  SetRatio(tuned);
  const MonotonicClock& clock = *context_.environment.clock;
  const db::ModelVerdict& v = judged_.verdict;
  const int64_t first_rounds = v.rounds;
  while (Undecided({v.ratio, v.ratio_low, v.ratio_high}, v.rounds, first_rounds) &&
         judged_.noisy_cpus == 0 && session.SecondsLeft() > seconds_for_ways_) {
    const auto others = WatchOthers();
    HONE_RETURN_IF_ERROR(GoOnInTurns({by_default_.get(), &tuned}, static_cast<int>(first_rounds),
                                     session.SecondsLeft() - seconds_for_ways_,
                                     options_.interrupted, clock));
    judged_.noisy_cpus = std::max(judged_.noisy_cpus, Disturbance(others.get()));
    SetRatio(tuned);
  }
  return absl::OkStatus();
}

absl::Status ModelJudge::CompareWithout(JudgedKernels& judged, compiler::TraceSource& traces,
                                        std::unique_ptr<TimedModel>& tuned) {
  WithDefaults fewer(traces, judged.suspects());
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<TimedModel> mended, Make(fewer, {options_.way.batch}));
  HONE_RETURN_IF_ERROR(Turns({by_default_.get(), tuned.get(), mended.get()}));
  if (judged_.noisy_cpus > 0 ||
      !search::StandsIn(RatioOf(tuned->samples_ns(), mended->samples_ns()))) {
    return absl::OkStatus();
  }
  judged.PutBackSuspects();
  tuned = std::move(mended);
  return absl::OkStatus();
}

void ModelJudge::SetRatio(const TimedModel& tuned) {
  const PairedRatio ratio = RatioOf(by_default_->samples_ns(), tuned.samples_ns());
  db::ModelVerdict& v = judged_.verdict;
  v.default_ns = by_default_->MedianNs();
  v.tuned_ns = tuned.MedianNs();
  v.ratio = ratio.median;
  v.ratio_low = ratio.low;
  v.ratio_high = ratio.high;
  v.rounds = static_cast<int64_t>(tuned.samples_ns().size());
}

}  // namespace hone::client
