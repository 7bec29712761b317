#include "client/model_judge.h"

#include <algorithm>

#include "fmt/format.h"

#include "base/status.h"
#include "client/log_trace_source.h"
#include "client/model_inputs.h"
#include "client/model_loader.h"
#include "client/open_log.h"
#include "measure/process_load.h"

namespace hone::client {
namespace {

/// A model with fewer changed kernels must not be slower than this times the one with more.
constexpr double kNotSlower = 0.998;
constexpr double kLoses = 0.99;

std::string HashOf(const search::Session& session, int task) {
  return session.tuner().task(task).hash.ToHex();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TimedModel>> ModelJudge::Make(compiler::TraceSource& traces) {
  const Arguments& arguments = context_.arguments;
  const MonotonicClock& clock = *context_.environment.clock;
  const std::string path = arguments.Text("MODEL");
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, ImportModel(arguments, path));
  HONE_ASSIGN_OR_RETURN(const NamedTensors inputs,
                        ReadOrDrawInputs(arguments, path, InputsOf(graph), context_.err));
  measure::BuilderClient builder(LocalBuilder(arguments, context_.environment), clock);
  return TimedModel::Create(std::move(graph), {options_.target, options_.device_class}, traces,
                            builder, inputs, clock);
}

void ModelJudge::MeasureDefault() {
  const MonotonicClock& clock = *context_.environment.clock;
  const int64_t start_ns = clock.NowNs();
  compiler::DefaultTraceSource defaults;
  const auto measure = [&]() -> absl::Status {
    HONE_ASSIGN_OR_RETURN(by_default_, Make(defaults));
    expected_seconds_ = 1.2 * static_cast<double>(clock.NowNs() - start_ns) * 1e-9;
    HONE_RETURN_IF_ERROR(RunInTurns({by_default_.get()}, 0.1, options_.interrupted, clock));
    verdict_.default_ns = by_default_->MedianNs();
    // Five rounds of two models at least, and what else the end of a session does.
    expected_seconds_ += std::max(options_.seconds, 12e-9 * verdict_.default_ns) + 0.2;
    return absl::OkStatus();
  };
  if (const absl::Status status = measure(); !status.ok()) {
    by_default_.reset();
    verdict_.skipped = fmt::format("the model does not run by default: {}", StatusMessage(status));
  }
}

absl::Status ModelJudge::Turns(const std::vector<TimedModel*>& models) {
  const MonotonicClock& clock = *context_.environment.clock;
  measure::ForeignLoad load(clock);
  HONE_RETURN_IF_ERROR(RunInTurns(models, options_.seconds, options_.interrupted, clock));
  const double foreign = load.SinceLast().value_or(0);
  if (foreign > measure::ForeignLoad::kDisturbing)
    verdict_.noisy_cpus = std::max(verdict_.noisy_cpus, foreign);
  return absl::OkStatus();
}

absl::Status ModelJudge::Judge(search::Session& session) {
  if (!by_default_) return absl::OkStatus();
  if (session.SecondsLeft() <= 0) {
    verdict_.skipped = "no time was left for it";
    return absl::OkStatus();
  }
  std::set<std::string> losing;
  if (const absl::Status compared = Compare(session, &losing); !compared.ok()) {
    verdict_.skipped = StatusMessage(compared);
    return absl::OkStatus();
  }
  // What other programs disturbed decides nothing.
  if (!verdict_.skipped.empty() || verdict_.noisy_cpus > 0) return absl::OkStatus();
  std::vector<search::Confirmation> confirmations;
  for (int i = 0; i < session.tuner().num_tasks(); ++i) {
    if (losing.count(HashOf(session, i)) != 0) {
      confirmations.push_back({i, true});
    } else if (session.verdicts()[static_cast<size_t>(i)].replaced) {
      confirmations.push_back({i, false});
    }
  }
  verdict_.put_back.assign(losing.begin(), losing.end());
  return session.AddConfirmations(confirmations);
}

absl::Status ModelJudge::Compare(search::Session& session, std::set<std::string>* losing) {
  HONE_ASSIGN_OR_RETURN(auto log, OpenUserLog(options_.log_path, {}));
  HONE_ASSIGN_OR_RETURN(
      const auto source,
      LogTraceSource::Create(
          std::move(log), {.device_class = options_.device_class, .accuracy = options_.accuracy}));
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<TimedModel> tuned, Make(*source));
  const std::set<std::string> changed = ChangedKernels(*by_default_, *tuned);
  if (changed.empty()) {
    verdict_.skipped = "no kernel has another schedule than by default";
    return absl::OkStatus();
  }
  HONE_RETURN_IF_ERROR(Turns({by_default_.get(), tuned.get()}));
  *losing = LosingKernels(*by_default_, *tuned);
  // Time was kept for one comparison; what another one would have to confirm waits for more.
  const auto in_time = [&] { return session.SecondsLeft() >= options_.seconds; };
  if (!in_time()) losing->clear();
  if (!losing->empty() && verdict_.noisy_cpus == 0) {
    // Of many kernels one loses by chance: it has to lose twice.
    HONE_RETURN_IF_ERROR(Turns({by_default_.get(), tuned.get()}));
    const std::set<std::string> again = LosingKernels(*by_default_, *tuned);
    std::erase_if(*losing, [&](const std::string& hash) { return again.count(hash) == 0; });
  }
  if (verdict_.noisy_cpus > 0 || !in_time()) losing->clear();
  if (!losing->empty()) {
    WithDefaults fewer(*source, *losing);
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<TimedModel> mended, Make(fewer));
    HONE_RETURN_IF_ERROR(Turns({by_default_.get(), tuned.get(), mended.get()}));
    if (verdict_.noisy_cpus == 0 &&
        RatioOf(tuned->samples_ns(), mended->samples_ns()).high >= kNotSlower) {
      tuned = std::move(mended);
    } else {
      losing->clear();
    }
  }
  const PairedRatio ratio = RatioOf(by_default_->samples_ns(), tuned->samples_ns());
  verdict_.default_ns = by_default_->MedianNs();
  verdict_.tuned_ns = tuned->MedianNs();
  verdict_.ratio = ratio.median;
  verdict_.ratio_low = ratio.low;
  verdict_.ratio_high = ratio.high;
  verdict_.rounds = static_cast<int64_t>(tuned->samples_ns().size());
  if (ratio.high < kLoses && verdict_.noisy_cpus == 0) {
    // No kernel can be blamed alone: the model stays as it was.
    for (int i = 0; i < session.tuner().num_tasks(); ++i) {
      if (changed.count(HashOf(session, i)) != 0) losing->insert(HashOf(session, i));
    }
  }
  return absl::OkStatus();
}

}  // namespace hone::client
