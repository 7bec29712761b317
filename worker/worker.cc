#include "worker/worker.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "fmt/format.h"

#include "base/core/timed_wait.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "base/status.h"
#include "grpcpp/grpcpp.h"
#include "measure/device_quarantine.h"
#include "measure/kind_runner.h"
#include "proto/convert.h"
#include "proto/farm_service.h"
#include "proto/limits.h"
#include "proto/probed_rates.h"
#include "worker/bench.h"
#include "worker/build_bench.h"
#include "worker/journal.h"

namespace hone::worker {
namespace {

using Stream = grpc::ClientReaderWriter<v1::WorkerMessage, v1::ServerMessage>;

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kLookOutNs = 100'000'000;
constexpr int64_t kLastWordsMs = 5000;
constexpr int64_t kStartedWaitNs = 1'000'000'000;

class Worker {
 public:
  /// `lock`: none where nothing runs.
  Worker(WorkerOptions options, Journal journal, std::optional<measure::DeviceLock> lock,
         const MonotonicClock& clock, const std::atomic<bool>& ending)
      : options_(std::move(options)),
        clock_(clock),
        ending_(ending),
        journal_(std::move(journal)),
        desk_(options_.desk, options_.hello) {
    const auto finished = [this](int64_t number, proto::WorkResult r) {
      OnFinished(number, std::move(r));
    };
    const auto busy = [this](int64_t ns) {
      const std::lock_guard guard(mutex_);
      desk_.AddBusy(ns);
    };
    measure::LocalMeasurerOptions measurer = options_.measurer;
    measurer.builder.on_unkillable =
        measurer.runner.on_unkillable = [this](pid_t pid) { OnUnkillable(pid); };
    measurer.on_bad_device = [this](const std::string& why) { OnBadDevice(why); };
    if (options_.hello.role == proto::WorkerRole::kBuild) {
      build_bench_.emplace(
          std::move(measurer.builder), std::move(measurer.build_hook), clock,
          BuildBench::Events{.built = [this](int64_t number, std::vector<HeldArtifact> artifacts,
                                             int64_t ns) { OnBuilt(number, artifacts, ns); },
                             .finished = finished,
                             .busy = busy});
    } else {
      bench_.emplace(std::move(measurer), options_.hello.role, *std::move(lock), clock,
                     Bench::Events{.started = [this](const auto& numbers) { OnStarted(numbers); },
                                   .finished = finished,
                                   .busy = busy});
      prober_ = std::thread([this] { ProbeWhenAsked(); });
    }
    timekeeper_ = std::thread([this] { KeepTime(); });
  }

  ~Worker();

  absl::Status Run();

 private:
  absl::Status OneStream();
  std::shared_ptr<grpc::Channel> Dial() const;
  void ReadAll(Stream& stream);
  void WriteAll(Stream& stream);
  bool WriteOne(Stream& stream, const proto::WorkerMessage& message);
  void OnStarted(const std::vector<int64_t>& numbers);
  void OnFinished(int64_t number, proto::WorkResult result);
  void OnBuilt(int64_t number, std::vector<HeldArtifact> artifacts, int64_t build_ns);
  void OnUnkillable(pid_t pid);
  void OnBadDevice(const std::string& why);
  void HandOut();
  void KillCancelled();
  /// Probes the device whenever it is asked for, first at the start.
  void ProbeWhenAsked();
  /// Gives leases and streams up in time, whatever the stream does: it may be away, or block.
  void KeepTime();
  /// With the lock: what an end that was asked for leads to; whether there is nothing left to do,
  /// or the time for it is over.
  bool DrainedLocked();
  bool Drained();

  const WorkerOptions options_;
  const MonotonicClock& clock_;
  const std::atomic<bool>& ending_;
  const Journal journal_;
  std::mutex mutex_;
  std::condition_variable changed_;
  LeaseDesk desk_;                          // guarded by mutex_, as all below
  bool broken_ = true;                      ///< no stream
  bool writing_ = false;                    ///< messages taken from the desk are on their way
  bool talked_ = false;                     ///< something came on this stream
  bool read_over_ = true;                   ///< and nothing more will
  int64_t drain_until_ns_ = 0;              ///< 0: no end was asked for
  grpc::ClientContext* context_ = nullptr;  ///< of the stream that is up
  bool probe_asked_ = true;
  bool ended_ = false;
  std::optional<Bench> bench_;  // one of these; after what their threads use: these end first
  std::optional<BuildBench> build_bench_;
  std::thread prober_;  // none where nothing is measured
  std::thread timekeeper_;
};

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  if (prober_.joinable()) prober_.join();
  timekeeper_.join();
}

void Worker::KeepTime() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    desk_.Tick(clock_.NowNs());
    // A write to a honed that reads nothing returns when the stream is cancelled, and else never.
    if (DrainedLocked() && context_ != nullptr &&
        clock_.NowNs() >= drain_until_ns_ + kLastWordsMs * kNsPerMs) {
      context_->TryCancel();
    }
    lock.unlock();
    KillCancelled();
    lock.lock();
    WaitFor(changed_, lock, kLookOutNs, [this] { return ended_; });
  }
}

void Worker::ProbeWhenAsked() {
  ir::Target target;
  std::string why;
  if (!ir::ParseTarget(options_.hello.device.target, &target, &why)) return;
  std::unique_lock lock(mutex_);
  for (int64_t number = 1;; ++number) {
    changed_.wait(lock, [this] { return ended_ || probe_asked_; });
    if (ended_) return;
    probe_asked_ = false;
    lock.unlock();
    const absl::StatusOr<measure::DeviceProbes> probes = bench_->Probe(target);
    lock.lock();
    if (probes.ok()) {
      desk_.SetProbes(proto::ProbesOf(*probes, target, number));
    } else {
      LogWarning("the device cannot be probed: {}", StatusMessage(probes.status()));
    }
    changed_.notify_all();
  }
}

void Worker::OnStarted(const std::vector<int64_t>& numbers) {
  std::unique_lock lock(mutex_);
  const int64_t number = numbers.front();
  desk_.Start(number, clock_.NowNs());
  changed_.notify_all();
  // honed must know before it runs, so that a crash of this process is blamed on it.
  WaitFor(changed_, lock, kStartedWaitNs,
          [this] { return broken_ || (!desk_.started_unsent() && !writing_); });
  KillPoint("worker.started");
}

void Worker::OnFinished(int64_t number, proto::WorkResult result) {
  KillPoint("worker.ran");
  if (result.outcome == measure::Outcome::kWorkerLost) {
    LogInfo("not the candidate's fault: {}", result.message);
  }
  const std::lock_guard lock(mutex_);
  desk_.Finish(number, std::move(result));
  changed_.notify_all();
}

void Worker::OnBuilt(int64_t number, std::vector<HeldArtifact> artifacts, int64_t build_ns) {
  const std::lock_guard lock(mutex_);
  desk_.FinishBuild(number, std::move(artifacts), build_ns);
  changed_.notify_all();
}

// On the thread that waits for the child: where it ran a candidate, with the device's lock held.
void Worker::OnUnkillable(pid_t pid) {
  const std::lock_guard lock(mutex_);
  desk_.SetDeviceLost(fmt::format(
      "process {} on its machine was killed and does not end (/proc/{}/stack there says why); "
      "start that machine again, or the worker once the process is gone, then undrain the device",
      pid, pid));
  changed_.notify_all();
}

// On the run thread.
void Worker::OnBadDevice(const std::string& why) {
  // A CPU is the machine's: that it works again is seen at once.
  if (measure::RunsOnHost(options_.hello.device.name)) return;
  const absl::Status put = measure::PutInQuarantine(options_.lock_folder, options_.lock, why);
  if (!put.ok()) LogWarning("{}", StatusMessage(put));
  const std::lock_guard lock(mutex_);
  desk_.SetDeviceLost(StatusMessage(measure::CheckQuarantine(options_.lock_folder, options_.lock)));
  changed_.notify_all();
}

void Worker::HandOut() {
  for (;;) {
    std::optional<DeskJob> job;
    {
      const std::lock_guard lock(mutex_);
      job = desk_.TakeJob();
    }
    if (!job) return;
    if (bench_) bench_->Add(*std::move(job));
    if (build_bench_) build_bench_->Add(*std::move(job));
  }
}

void Worker::KillCancelled() {
  std::vector<int64_t> cancelled;
  {
    const std::lock_guard lock(mutex_);
    cancelled = desk_.TakeCancelled();
  }
  for (const int64_t number : cancelled) {
    if (bench_) bench_->Cancel(number);
    if (build_bench_) build_bench_->Cancel(number);
  }
}

std::shared_ptr<grpc::Channel> Worker::Dial() const {
  grpc::ChannelArguments arguments;
  // A question after so much silence, and so long for the answer.
  const int answer_ms = static_cast<int>(options_.silent_ms / 3);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 2 * answer_ms);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, answer_ms);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Each attempt dials anew: the pauses between them are ours.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(static_cast<int>(proto::kMaxMessageBytes));
  if (options_.plaintext) {
    return grpc::CreateCustomChannel(options_.server, grpc::InsecureChannelCredentials(),
                                     arguments);
  }
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = options_.credentials.ca;
  tls.pem_private_key = options_.credentials.key;
  tls.pem_cert_chain = options_.credentials.certificate;
  arguments.SetSslTargetNameOverride(kServerName);
  return grpc::CreateCustomChannel(options_.server, grpc::SslCredentials(tls), arguments);
}

void Worker::ReadAll(Stream& stream) {
  v1::ServerMessage wire;
  while (stream.Read(&wire)) {
    const auto message = proto::FromWire(wire);
    if (!message.ok()) {
      LogError("honed sent a message that is not allowed: {}", StatusMessage(message.status()));
      break;
    }
    std::vector<LeaseDesk::Acknowledged> acknowledged;
    {
      const std::lock_guard lock(mutex_);
      if (!std::exchange(talked_, true)) {
        LogInfo("connected to honed at '{}' as {}/{}", options_.server, options_.name,
                options_.hello.device.name);
      }
      desk_.OnServer(*message, clock_.NowNs());
      acknowledged = desk_.TakeAcknowledged();
      probe_asked_ |= desk_.TakeProbeAsked();
      changed_.notify_all();
    }
    if (std::holds_alternative<proto::Grant>(*message)) KillPoint("worker.granted");
    for (const auto& a : acknowledged) {
      KillPoint("worker.answered");
      journal_.Write(fmt::format("ack {} {} {} {} {}", a.token.ToHex(), a.session.ToHex(),
                                 a.attempt, a.digest, static_cast<int>(a.verdict)));
    }
    KillCancelled();
    HandOut();
  }
  const std::lock_guard lock(mutex_);
  broken_ = read_over_ = true;
  changed_.notify_all();
}

bool Worker::WriteOne(Stream& stream, const proto::WorkerMessage& message) {
  const auto* result = std::get_if<proto::WorkResult>(&message);
  if (result != nullptr) {
    journal_.Write(
        fmt::format("result {} {}", result->token.ToHex(), proto::ResultDigest(*result)));
  }
  if (result != nullptr) KillPoint("worker.sending");
  v1::WorkerMessage wire;
  proto::ToWire(message, &wire);
  const bool written = stream.Write(wire);
  if (result != nullptr) KillPoint("worker.sent");
  return written;
}

void Worker::WriteAll(Stream& stream) {
  std::unique_lock lock(mutex_);
  int64_t heartbeat_ns = clock_.NowNs();
  bool drained = false;
  while (!broken_) {
    if (DrainedLocked() && clock_.NowNs() >= drain_until_ns_) {
      drained = true;
      break;
    }
    std::optional<proto::WorkerMessage> message = desk_.TakeMessage();
    if (!message && clock_.NowNs() >= heartbeat_ns && talked_) {
      heartbeat_ns = clock_.NowNs() + desk_.heartbeat_ms() * kNsPerMs;
      if (bench_) desk_.SetSentinel(bench_->sentinel_ns());
      message = desk_.MakeHeartbeat();
    }
    if (!message) {
      drained = desk_.draining() && desk_.empty();
      if (drained) break;
      WaitFor(changed_, lock, kLookOutNs);
      continue;
    }
    writing_ = true;
    lock.unlock();
    const bool written = WriteOne(stream, *message);
    lock.lock();
    writing_ = false;
    changed_.notify_all();
    if (!written) break;
  }
  broken_ = true;
  desk_.OnDisconnected();
  changed_.notify_all();
  // Otherwise it was the server's side that ended, and its status says why.
  if (!drained) return;
  lock.unlock();
  // A stream that is cancelled may lose what was written last: honed ends it when it has read all.
  const bool said = stream.WritesDone();
  lock.lock();
  if (said) {
    WaitFor(changed_, lock, kLastWordsMs * kNsPerMs, [this] { return read_over_; });
  }
  context_->TryCancel();
}

absl::Status Worker::OneStream() {
  const std::shared_ptr<grpc::Channel> channel = Dial();
  const std::unique_ptr<v1::Workers::Stub> stub = v1::Workers::NewStub(channel);
  grpc::ClientContext context;
  if (options_.plaintext) context.AddMetadata("hone-name", options_.name);
  const std::unique_ptr<Stream> stream = stub->Work(&context);
  {
    const std::lock_guard lock(mutex_);
    broken_ = talked_ = read_over_ = false;
    context_ = &context;
    desk_.OnConnected();
  }
  std::thread reader([&] { ReadAll(*stream); });
  WriteAll(*stream);
  reader.join();
  const absl::Status status = proto::FromGrpc(stream->Finish());
  const std::lock_guard lock(mutex_);
  context_ = nullptr;
  return status;
}

bool Worker::DrainedLocked() {
  if (!ending_.load()) return false;
  desk_.BeginDraining();
  if (drain_until_ns_ == 0) drain_until_ns_ = clock_.NowNs() + options_.drain_ms * kNsPerMs;
  return desk_.empty() || clock_.NowNs() >= drain_until_ns_;
}

bool Worker::Drained() {
  const std::lock_guard lock(mutex_);
  return DrainedLocked();
}

absl::Status Worker::Run() {
  BackOff back_off(options_.seed);
  bool told = false;
  while (!Drained()) {
    const absl::Status status = OneStream();
    bool talked = false;
    {
      const std::lock_guard lock(mutex_);
      talked = talked_;
    }
    switch (status.code()) {
      case absl::StatusCode::kFailedPrecondition:
      case absl::StatusCode::kPermissionDenied:
      case absl::StatusCode::kUnauthenticated:
      case absl::StatusCode::kInvalidArgument:
        // Trying on changes nothing, and nobody would read why. Not kInvalidArgument, which is the
        // command line's: a service manager starts what was refused again.
        return absl::FailedPreconditionError(
            fmt::format("honed at '{}' refuses this worker: {}; put that right and start it again "
                        "(as a service it starts by itself)",
                        options_.server, StatusMessage(status)));
      default: break;
    }
    if (talked) {
      back_off.Reset();
      told = false;
    }
    if (Drained()) break;
    if (!std::exchange(told, true)) {
      const std::string why = proto::WhyNoConnection(
          status, options_.plaintext ? proto::Dialled::kPlaintext : proto::Dialled::kTls);
      LogWarning("no connection to honed at '{}': {}{}({}); trying again", options_.server, why,
                 why.empty() ? "" : " ", StatusMessage(status));
    }
    clock_.SleepNs(back_off.NextNs());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunWorker(WorkerOptions options, const MonotonicClock& clock,
                       const std::atomic<bool>& ending) {
  HONE_ASSIGN_OR_RETURN(Journal journal, Journal::Open(options.journal));
  std::optional<measure::DeviceLock> lock;
  if (options.hello.role != proto::WorkerRole::kBuild) {
    HONE_RETURN_IF_ERROR(measure::CheckQuarantine(options.lock_folder, options.lock));
    HONE_ASSIGN_OR_RETURN(lock, measure::DeviceLock::Open(options.lock_folder, options.lock));
  }
  Worker worker(std::move(options), std::move(journal), std::move(lock), clock, ending);
  return worker.Run();
}

}  // namespace hone::worker
