#include "measure/local_measurer.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/core/check.h"
#include "base/core/timed_wait.h"
#include "measure/device.h"

namespace hone::measure {
namespace {

constexpr int kMinRounds = 3;
constexpr int kMaxRounds = 50;
/// What is not faster by so much on a part of the work is not run whole: the finals look at those
/// that are about as fast.
constexpr double kPromising = 0.98;
/// How many rounds a comparison has was decided before it waits for other programs.
constexpr int64_t kMostBeforeComparisonNs = 1'000'000'000;

double Milliseconds(int64_t ns) { return static_cast<double>(ns) * 1e-6; }

}  // namespace

LocalMeasurer::LocalMeasurer(LocalMeasurerOptions options, const MonotonicClock& clock)
    : options_(std::move(options)),
      clock_(clock),
      client_(options_.builder, clock),
      builder_(client_, clock),
      runner_(
          options_.runner, options_.oracle,
          [this](const MeasureInput& input) {
            if (!options_.build) {
              return builder_.Build(*input.workload, input.target, "", input.seed, "", Keep::kYes,
                                    &running_builds_);
            }
            MeasureInput with_default = input;
            with_default.trace.clear();
            return options_.build(with_default);
          },
          clock),
      watch_(WatchOthersOf(options_.runner.device, clock)) {
  HONE_CHECK(options_.built_ahead > 0);
  for (int i = 0; i < options_.builder.processes; ++i) {
    threads_.emplace_back([this] { BuildLoop(); });
  }
  threads_.emplace_back([this] { RunLoop(); });
}

LocalMeasurer::~LocalMeasurer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void LocalMeasurer::Submit(MeasureInput input) {
  HONE_CHECK(input.workload != nullptr);
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(input), {}});
    ++in_flight_;
  }
  changed_.notify_all();
}

std::vector<MeasureResult> LocalMeasurer::Collect(int64_t timeout_ns) {
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return !results_.empty() || in_flight_ == 0; };
  if (timeout_ns < 0) {
    changed_.wait(lock, ready);
  } else if (timeout_ns > 0) {
    WaitFor(changed_, lock, timeout_ns, ready);
  }
  in_flight_ -= static_cast<int64_t>(results_.size());
  return std::exchange(results_, {});
}

void LocalMeasurer::DropWaiting() {
  const std::lock_guard lock(mutex_);
  in_flight_ -= static_cast<int64_t>(waiting_.size() + built_.size());
  waiting_.clear();
  built_.clear();
  changed_.notify_all();
}

int64_t LocalMeasurer::Cancel(int64_t id) {
  const std::lock_guard lock(mutex_);
  const auto is_it = [id](const Item& item) { return item.input.id == id; };
  const auto [first, last] = builds_.equal_range(id);
  for (auto build = first; build != last; ++build) build->second->Pull();
  const auto forgotten = static_cast<int64_t>(std::erase_if(waiting_, is_it) +
                                              std::erase_if(built_, is_it) + builds_.erase(id));
  in_flight_ -= forgotten;
  if (std::ranges::find(running_ids_, id) != running_ids_.end()) {
    running_builds_.Pull();
    runner_.Interrupt();
  } else {
    // It would run in full later, though nobody holds a lease for it or keeps its time.
    std::erase_if(comparisons_, [id](const std::unique_ptr<Comparison>& comparison) {
      const bool found =
          std::ranges::find(comparison->inputs, id, &MeasureInput::id) != comparison->inputs.end();
      if (found) GiveUp(*comparison, "it was cancelled before it ran");
      return found;
    });
  }
  changed_.notify_all();
  return forgotten;
}

void LocalMeasurer::SetRunning(std::vector<int64_t> ids) {
  running_ids_ = std::move(ids);
  running_builds_.Reset();
  runner_.Resume();
}

void LocalMeasurer::WhileNotTiming(const std::function<void()>& work) {
  std::unique_lock lock(mutex_);
  ++others_;
  changed_.wait(lock, [this] { return !running_; });
  lock.unlock();
  work();
  lock.lock();
  --others_;
  changed_.notify_all();
}

int64_t LocalMeasurer::paused_ns() const {
  const std::lock_guard lock(mutex_);
  return paused_ns_;
}

int64_t LocalMeasurer::sentinel_ns() const {
  const std::lock_guard lock(mutex_);
  return sentinel_ns_;
}

int64_t LocalMeasurer::num_in_flight() const {
  const std::lock_guard lock(mutex_);
  return in_flight_;
}

int64_t LocalMeasurer::reference_ns() const {
  const std::lock_guard lock(mutex_);
  return reference_ns_;
}

std::vector<ComparedTrace> LocalMeasurer::Compare(const std::vector<MeasureInput>& inputs,
                                                  int rounds) {
  return StartComparing(inputs, rounds).get();
}

std::future<std::vector<ComparedTrace>> LocalMeasurer::StartComparing(
    std::vector<MeasureInput> inputs, int rounds) {
  static_assert(kMaxCompared == kMaxSlots);  // the last slot is the default's
  HONE_CHECK(static_cast<int>(inputs.size()) < kMaxCompared);
  auto comparison = std::make_unique<Comparison>();
  comparison->inputs = std::move(inputs);
  comparison->rounds = std::clamp(rounds, kMinRounds, kMaxRounds);
  auto result = comparison->result.get_future();
  {
    const std::lock_guard lock(mutex_);
    comparisons_.push_back(std::move(comparison));
  }
  changed_.notify_all();
  return result;
}

void LocalMeasurer::GiveUp(Comparison& comparison, const std::string& why) {
  comparison.result.set_value(
      std::vector<ComparedTrace>(comparison.inputs.size(), {{Outcome::kWorkerLost, why}, {}}));
}

bool LocalMeasurer::MayBuild() const {
  if (waiting_.empty() || !comparisons_.empty()) return false;
  if (options_.alternate && running_) return false;
  return static_cast<int>(built_.size()) + building_ < options_.built_ahead;
}

bool LocalMeasurer::MayRun() const {
  if (others_ > 0) return false;
  if (!comparisons_.empty()) return building_ == 0;
  if (built_.empty()) return false;
  if (!options_.alternate) return true;
  return building_ == 0 && !MayBuild();
}

void LocalMeasurer::BuildLoop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || MayBuild(); });
    if (stopping_) return;
    Item item = std::move(waiting_.front());
    waiting_.pop_front();
    ++building_;
    KillSwitch stop;
    builds_.emplace(item.input.id, &stop);
    lock.unlock();
    const MeasureInput& input = item.input;
    // Most candidates are seen once: the cache is for those that come back.
    const Keep keep = input.kind == MeasureKind::kFinal ? Keep::kYes : Keep::kNo;
    item.built = Build(input, keep, &stop);
    lock.lock();
    --building_;
    // Else it was cancelled; who has its number now is another.
    if (std::erase_if(builds_, [&](const auto& build) { return build.second == &stop; }) > 0) {
      built_.push_back(std::move(item));
    }
    changed_.notify_all();
  }
}

void LocalMeasurer::RunLoop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || MayRun(); });
    if (stopping_) break;
    running_ = true;
    if (!comparisons_.empty()) {
      RunComparison(lock);
    } else {
      RunBuilt(lock);
    }
    running_ = false;
    changed_.notify_all();
  }
  for (const auto& comparison : comparisons_) {
    GiveUp(*comparison, "measuring was ended before the comparison");
  }
  comparisons_.clear();
  changed_.notify_all();
}

void LocalMeasurer::RunBuilt(std::unique_lock<std::mutex>& lock) {
  // Neighbours of one Workload share the runner's tensors.
  std::ranges::stable_sort(built_, {}, [](const Item& item) { return item.built.job.data_key; });
  std::vector<MeasureResult> held;
  while (!built_.empty() && !stopping_ && others_ == 0 && comparisons_.empty()) {
    const Item item = std::move(built_.front());
    built_.pop_front();
    SetRunning({item.input.id});
    lock.unlock();
    if (options_.before_run) options_.before_run({item.input.id});
    held.push_back(RunOne(item));
    LookAtDevice();
    if (options_.after_run) options_.after_run();
    const int64_t reference_ns = runner_.reference_ns();
    const int64_t sentinel_ns = runner_.sentinel_ns();
    const bool looked = LookAtOthers();
    lock.lock();
    SetRunning({});
    reference_ns_ = reference_ns;
    sentinel_ns_ = sentinel_ns;
    if (!looked) continue;
    Deliver(held);
    if (disturbed_) AwaitQuiet(lock, options_.max_pause_ns);
  }
  Deliver(held);
}

void LocalMeasurer::Deliver(std::vector<MeasureResult>& held) {
  for (MeasureResult& result : held) {
    result.noisy = result.noisy || disturbed_;
    results_.push_back(std::move(result));
  }
  held.clear();
  changed_.notify_all();
}

bool LocalMeasurer::LookAtOthers() {
  const std::optional<double> others = watch_ ? watch_->SinceLast() : std::optional<double>(0);
  if (others) disturbed_ = *others > OthersWatch::kDisturbing;
  return others.has_value();
}

void LocalMeasurer::AwaitQuiet(std::unique_lock<std::mutex>& lock, int64_t most_ns) {
  while (disturbed_ && paused_ns_ < most_ns && !stopping_ && others_ == 0) {
    lock.unlock();
    const int64_t start_ns = clock_.NowNs();
    clock_.SleepNs(OthersWatch::kLeastNs);
    disturbed_ = LookAtOthers() && disturbed_;
    const int64_t waited_ns = clock_.NowNs() - start_ns;
    lock.lock();
    paused_ns_ += waited_ns;
  }
}

void LocalMeasurer::RunComparison(std::unique_lock<std::mutex>& lock) {
  Comparison& comparison = *comparisons_.front();
  std::vector<int64_t> ids;
  for (const MeasureInput& input : comparison.inputs) ids.push_back(input.id);
  SetRunning(ids);
  lock.unlock();
  // The device is others' until there is something to run.
  const std::vector<BuiltCandidate> built = BuildAll(comparison.inputs);
  LookAtOthers();
  lock.lock();
  AwaitQuiet(lock, std::min(options_.max_pause_ns, paused_ns_ + kMostBeforeComparisonNs));
  lock.unlock();
  if (options_.before_run) options_.before_run(ids);
  // Who had the device while this one waited for its turn does not disturb it.
  const bool disturbed = disturbed_;
  LookAtOthers();
  disturbed_ = disturbed;
  std::vector<ComparedTrace> result = CompareNow(comparison, built);
  LookAtDevice();
  if (options_.after_run) options_.after_run();
  // Where it is too early to tell, what was seen before it counts.
  LookAtOthers();
  for (ComparedTrace& compared : result) compared.noisy |= disturbed_;
  lock.lock();
  SetRunning({});
  comparison.result.set_value(std::move(result));
  comparisons_.pop_front();
}

BuiltCandidate LocalMeasurer::Build(const MeasureInput& input, Keep keep, KillSwitch* stop) {
  if (options_.build) return options_.build(input);
  return builder_.Build(*input.workload, input.target, input.trace, input.seed,
                        HookOf(options_.build_hook, input), keep, stop);
}

std::string LocalMeasurer::HookOf(const std::function<std::string(const MeasureInput&)>& hook,
                                  const MeasureInput& input) const {
  return hook ? hook(input) : std::string();
}

MeasureResult LocalMeasurer::RunOne(const Item& item) {
  const MeasureInput& input = item.input;
  MeasureResult result;
  result.id = input.id;
  result.device = options_.device_class;
  result.build_ms = Milliseconds(item.built.build_ns);
  const auto fail = [&](AttemptError error) {
    result.outcome = error.outcome;
    result.message = std::move(error.message);
    return result;
  };
  if (item.built.error.outcome != Outcome::kOk) return fail(item.built.error);
  AttemptError error;
  CandidateRunner::Timed timed;
  bool done = false;
  result.run_ms = RunMs([&] {
    const bool screen = input.kind == MeasureKind::kScreen;
    const std::string hook = HookOf(options_.run_hook, input);  // one for both ways
    done = screen && input.part_ns > 0 && RunPartOf(item, hook, &result);
    if (done) return;
    error = runner_.Prepare(input, item.built, 0, hook);
    if (error.outcome != Outcome::kOk) return;
    TimingPolicy policy = screen ? options_.screen : options_.final;
    policy.incumbent_ns = !screen              ? 0
                          : result.part_ns > 0 ? runner_.IncumbentNs(input, item.built)
                                               : input.incumbent_ns;
    timed = runner_.Time(0, policy);
    error = timed.error;
    if (error.outcome == Outcome::kOk && input.part_ns > 0)
      runner_.NoteWhole(input, item.built, MedianNs(timed.reply.samples_ns));
  });
  if (done) return result;
  if (error.outcome != Outcome::kOk) return fail(std::move(error));
  result.outcome = Outcome::kOk;
  result.message = std::move(timed.reply.conditions);
  result.samples_ns = std::move(timed.reply.samples_ns);
  result.hopeless = timed.reply.hopeless;
  result.noisy = timed.noisy;
  return result;
}

bool LocalMeasurer::RunPartOf(const Item& item, const std::string& hook, MeasureResult* result) {
  const MeasureInput& input = item.input;
  CandidateRunner::OnPart on_part = runner_.TimeOnPart(input, item.built, hook);
  if (on_part.samples_ns.empty()) return false;
  result->part_ns = MedianNs(on_part.samples_ns);
  const int64_t incumbent_ns = runner_.IncumbentNs(input, item.built);
  const double expected_ns = input.part_ratio * static_cast<double>(result->part_ns);
  if (incumbent_ns == 0 || input.both_ways ||
      expected_ns < kPromising * static_cast<double>(incumbent_ns)) {
    return false;
  }
  for (int64_t& ns : on_part.samples_ns) {
    ns = std::max<int64_t>(1, static_cast<int64_t>(input.part_ratio * static_cast<double>(ns)));
  }
  result->outcome = Outcome::kOk;
  result->message = std::move(on_part.conditions);
  result->samples_ns = std::move(on_part.samples_ns);
  result->part = on_part.part;
  result->hopeless =
      expected_ns > options_.screen.hopeless_ratio * static_cast<double>(incumbent_ns);
  result->noisy = on_part.noisy;
  return true;
}

void LocalMeasurer::LookAtDevice() {
  if (bad_ || runner_.device_failures() < RunnerClient::kBadDevice) return;
  bad_ = true;
  if (options_.on_bad_device) options_.on_bad_device(runner_.device_failure());
}

double LocalMeasurer::RunMs(const std::function<void()>& work) {
  const int64_t reference_before_ns = runner_.reference_ns();
  const int64_t start_ns = clock_.NowNs();
  work();
  const int64_t reference_ns = runner_.reference_ns() - reference_before_ns;
  return Milliseconds(clock_.NowNs() - start_ns - reference_ns);
}

std::vector<BuiltCandidate> LocalMeasurer::BuildAll(const std::vector<MeasureInput>& inputs) {
  std::vector<BuiltCandidate> built(inputs.size());
  std::vector<std::thread> builds;
  std::atomic<size_t> next = 0;
  for (int k = 0; k < std::min(options_.builder.processes, static_cast<int>(inputs.size())); ++k) {
    builds.emplace_back([&] {
      for (size_t i = next++; i < inputs.size(); i = next++) {
        const MeasureInput& input = inputs[i];
        built[i] = Build(input, Keep::kYes, &running_builds_);
      }
    });
  }
  for (std::thread& build : builds) build.join();
  return built;
}

std::vector<int> LocalMeasurer::PrepareAll(const std::vector<MeasureInput>& inputs,
                                           const std::vector<BuiltCandidate>& built,
                                           std::vector<ComparedTrace>* compared) {
  std::vector<int> slots(inputs.size(), -1);
  for (size_t i = 0; i < inputs.size(); ++i) (*compared)[i].error = built[i].error;
  // One that crashes takes those before it along: they are prepared again, without it.
  for (bool failed = true; failed;) {
    failed = false;
    // From 0 on, whatever could not be built: that one has a process of an earlier candidate ended.
    int slot = 0;
    for (size_t i = 0; i < inputs.size() && !failed; ++i) {
      AttemptError& error = (*compared)[i].error;
      if (error.outcome != Outcome::kOk) continue;
      (*compared)[i].run_ms += RunMs([&] {
        error = runner_.Prepare(inputs[i], built[i], slot, HookOf(options_.run_hook, inputs[i]));
      });
      failed = error.outcome != Outcome::kOk;
      slots[i] = slot++;
    }
  }
  return slots;
}

std::vector<ComparedTrace> LocalMeasurer::CompareNow(const Comparison& comparison,
                                                     const std::vector<BuiltCandidate>& built) {
  const std::vector<MeasureInput>& inputs = comparison.inputs;
  std::vector<ComparedTrace> compared(inputs.size());
  const std::vector<int> slots = PrepareAll(inputs, built, &compared);
  TimingPolicy once = options_.final;
  once.min_samples = once.max_samples = 1;
  for (int round = 0; round < comparison.rounds; ++round) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (compared[i].error.outcome != Outcome::kOk) continue;
      CandidateRunner::Timed timed;
      compared[i].run_ms += RunMs([&] { timed = runner_.Time(slots[i], once); });
      compared[i].error = timed.error;
      if (timed.error.outcome != Outcome::kOk) continue;
      compared[i].noisy |= timed.noisy;
      compared[i].samples_ns.push_back(timed.reply.samples_ns.front());
    }
  }
  return compared;
}

}  // namespace hone::measure
