#include "measure/model_turns.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/core/status_macros.h"
#include "measure/fill.h"
#include "measure/seeded_package.h"
#include "runtime/context.h"
#include "runtime/plan_check.h"

namespace hone::measure {
namespace {

constexpr int kLeastRounds = 5, kMostRuns = 100;
constexpr int64_t kTurnNs = 1'000'000;

/// A model with memory for its inputs and outputs.
class TurnModel {
 public:
  static Result<std::unique_ptr<TurnModel>> Make(const std::string& cut, const ModelJob& job,
                                                 const MonotonicClock& clock, TimedBy timed);

  bool HasForks() const { return !package_.executable->plan().forks.empty(); }
  enum class Times : uint8_t { kKernels, kWhole };
  /// Finds how many runs a turn takes.
  Status Begin(const std::shared_ptr<runtime::ThreadPool>& pool, Times times) {
    runtime::RunOptions options;
    options.pool = pool;
    options.fixed_shares = true;
    if (times == Times::kKernels) options.profile_clock = &clock_;
    HONE_ASSIGN_OR_RETURN(context_, runtime::Context::Create(package_.executable, options));
    HONE_ASSIGN_OR_RETURN(const int64_t once_ns, Mean(2, nullptr));
    const auto runs =
        static_cast<int>(std::min<int64_t>(kTurnNs / std::max<int64_t>(once_ns, 1), kMostRuns));
    runs_ = runs < 1 ? 1 : runs + 1;
    return {};
  }
  Status TakeTurn() {
    std::map<std::string_view, int64_t> kernel_ns;
    HONE_ASSIGN_OR_RETURN(const int64_t mean_ns, Mean(runs_, &kernel_ns));
    times_.samples_ns.push_back(std::max<int64_t>(mean_ns, 1));
    const size_t most = kMaxKernelSamples / std::max<size_t>(kernel_ns.size(), 1);
    if (times_.samples_ns.size() > std::min(kKernelRounds, most)) return {};
    for (const auto& [hash, ns] : kernel_ns) {
      times_.kernel_ns[std::string(hash)].push_back(std::max<int64_t>(ns, 1));
    }
    return {};
  }
  ModelTimes TakeTimes() { return std::move(times_); }

 private:
  TurnModel(SeededPackage package, const MonotonicClock& clock, TimedBy timed)
      : package_(std::move(package)), clock_(clock), timed_(timed) {}

  Status MakeTensors(uint64_t seed);
  /// Time of a run; of each kernel in it, by Workload hash, unless that is null.
  Result<int64_t> Mean(int runs, std::map<std::string_view, int64_t>* kernel_ns) {
    int64_t total_ns = 0;
    const int skipped = runs > 1 ? 1 : 0;
    for (int run = 0; run < runs; ++run) {
      const int64_t begin_ns = clock_.NowNs();
      HONE_RETURN_IF_ERROR(context_->Run(inputs_, outputs_));
      const int64_t host_ns = clock_.NowNs() - begin_ns;
      if (run < skipped) continue;
      total_ns += timed_ == TimedBy::kDevice ? context_->device_ns().value_or(host_ns) : host_ns;
      if (kernel_ns != nullptr) AddKernels(*kernel_ns);
    }
    if (kernel_ns != nullptr) {
      for (auto& [hash, ns] : *kernel_ns) ns /= runs - skipped;
    }
    return total_ns / (runs - skipped);
  }

  /// Those of the last run.
  void AddKernels(std::map<std::string_view, int64_t>& kernel_ns) const {
    const ir::Plan& plan = package_.executable->plan();
    const std::span<const int64_t> step_ns = context_->step_times_ns();
    for (size_t i = 0; i < step_ns.size(); ++i) {
      const ir::PlanStep& step = plan.steps[i];
      if (step.kind != ir::PlanStepKind::kKernel) continue;
      kernel_ns[plan.kernels[static_cast<size_t>(step.kernel)].workload_hash] += step_ns[i];
    }
  }

  SeededPackage package_;
  const MonotonicClock& clock_;
  const TimedBy timed_;
  std::vector<runtime::Region> memory_;
  std::vector<runtime::InputBuffer> inputs_;
  std::vector<runtime::OutputBuffer> outputs_;
  std::unique_ptr<runtime::Context> context_;  // after what it runs on
  int runs_ = 1;                               ///< of a turn
  ModelTimes times_;
};

Status TurnModel::MakeTensors(uint64_t seed) {
  const ir::Plan& plan = package_.executable->plan();
  for (const ir::PlanValue& value : plan.inputs) {
    const auto bytes = static_cast<size_t>(*runtime::DenseBytes(value.dtype, value.shape));
    HONE_ASSIGN_OR_RETURN(runtime::Region region, runtime::Region::Allocate(bytes, "an input"));
    // Integers may be indices: 0 is in range of all.
    const bool wide = value.dtype == ir::DType::kI32 || value.dtype == ir::DType::kI64;
    FillTensor(value.dtype, wide ? 0 : -1, wide ? 0 : 1, seed, static_cast<int>(inputs_.size()),
               region.span().first(bytes));
    inputs_.push_back({region.data(), bytes});
    memory_.push_back(std::move(region));
  }
  for (const ir::PlanValue& value : plan.outputs) {
    const auto bytes = static_cast<size_t>(*runtime::DenseBytes(value.dtype, value.shape));
    HONE_ASSIGN_OR_RETURN(runtime::Region region, runtime::Region::Allocate(bytes, "an output"));
    outputs_.push_back({region.data(), bytes});
    memory_.push_back(std::move(region));
  }
  return {};
}

Result<std::unique_ptr<TurnModel>> TurnModel::Make(const std::string& cut, const ModelJob& job,
                                                   const MonotonicClock& clock, TimedBy timed) {
  HONE_ASSIGN_OR_RETURN(SeededPackage package, SeededPackage::Make(cut, job.seed));
  std::unique_ptr<TurnModel> model(new TurnModel(std::move(package), clock, timed));
  HONE_RETURN_IF_ERROR(model->MakeTensors(job.seed));
  return model;
}

}  // namespace

Result<std::vector<ModelTimes>> RunModelsInTurns(const ModelJob& job,
                                                 const std::shared_ptr<runtime::ThreadPool>& pool,
                                                 const MonotonicClock& clock, TimedBy timed) {
  std::vector<std::unique_ptr<TurnModel>> models;
  for (const std::string& cut : job.packages) {
    HONE_ASSIGN_OR_RETURN(models.emplace_back(), TurnModel::Make(cut, job, clock, timed));
  }
  // Branches whose steps are timed run in turn.
  const bool forks =
      std::ranges::any_of(models, [](const auto& model) { return model->HasForks(); });
  for (const auto& model : models) {
    HONE_RETURN_IF_ERROR(
        model->Begin(pool, forks ? TurnModel::Times::kWhole : TurnModel::Times::kKernels));
  }
  std::vector<TurnModel*> order;
  for (const auto& model : models) order.push_back(model.get());
  const int64_t until_ns = clock.NowNs() + job.most_ns;
  for (int round = 0; round < std::max(job.rounds, kLeastRounds); ++round) {
    if (round >= kLeastRounds && clock.NowNs() >= until_ns) break;
    for (TurnModel* model : order) HONE_RETURN_IF_ERROR(model->TakeTurn());
    // The second one finds the caches as the first left them: each is second as often.
    std::reverse(order.begin(), order.end());
  }
  std::vector<ModelTimes> times;
  for (const auto& model : models) times.push_back(model->TakeTimes());
  return times;
}

}  // namespace hone::measure
