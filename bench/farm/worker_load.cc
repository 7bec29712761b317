#include "bench/farm/worker_load.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <queue>
#include <thread>
#include <unordered_map>
#include <utility>

#include "fmt/format.h"

#include "base/core/random_id.h"
#include "base/core/timed_wait.h"
#include "base/versions.h"
#include "bench/farm/simulated_times.h"
#include "grpcpp/grpcpp.h"
#include "proto/farm_service.h"
#include "proto/limits.h"
#include "worker/lease_desk.h"

namespace hone::bench {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kSentinelNs = 1'000'000;
constexpr int64_t kSentinelEveryNs = 30'000 * kNsPerMs;

}  // namespace

class WorkerLoad::Impl {
 public:
  Impl(Options options, const MonotonicClock& clock);
  ~Impl() { Stop(); }

  void Start(int64_t ramp_ns);
  void BeginDraining();
  void Stop();
  Counts counts() const;
  std::vector<Accepted> Journal() const;

  Latencies grants, commits;

 private:
  class Worker;
  class Stream;
  enum class Wake : uint8_t { kDial, kFinish, kHeartbeat };
  struct Timer {
    int64_t at_ns = 0;
    size_t worker = 0;
    Wake wake = Wake::kDial;
    int64_t number = 0;  ///< of a job, of a stream
    bool operator>(const Timer& other) const { return at_ns > other.at_ns; }
  };

  void At(const Timer& timer);
  void TimerLoop();

  const Options options_;
  const MonotonicClock& clock_;
  SimulatedTimes times_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<int64_t> acknowledged_{0}, refused_{0}, streams_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;  // guarded by mutex_
  bool stopping_ = false;                                                  // guarded by mutex_
  std::thread thread_;
};

/// One call. Deleted by the worker at its next one, after OnDone.
class WorkerLoad::Impl::Stream final
    : public grpc::ClientBidiReactor<v1::WorkerMessage, v1::ServerMessage> {
 public:
  Stream(Worker& worker, int64_t number, std::shared_ptr<grpc::Channel> channel)
      : worker_(worker),
        number_(number),
        channel_(std::move(channel)),
        stub_(v1::Workers::NewStub(channel_)) {}

  void Begin() {
    stub_->async()->Work(&context_, this);
    // Writes are begun from other threads too.
    AddHold();
    StartRead(&in_);
    StartCall();
  }
  void Write(const proto::WorkerMessage& message) {
    out_.Clear();
    proto::ToWire(message, &out_);
    StartWrite(&out_);
  }
  void Release() { RemoveHold(); }
  void Cancel() { context_.TryCancel(); }
  int64_t number() const { return number_; }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  Worker& worker_;
  const int64_t number_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Workers::Stub> stub_;
  grpc::ClientContext context_;
  v1::WorkerMessage out_;
  v1::ServerMessage in_;
};

class WorkerLoad::Impl::Worker {
 public:
  Worker(Impl& owner, size_t index, proto::Hello hello)
      : owner_(owner),
        index_(index),
        desk_({.ahead = owner.options_.ahead}, std::move(hello)),
        back_off_(owner.options_.seed + index),
        random_(Random(owner.options_.seed).Fork(index)) {}

  void Dial();
  void Finish(int64_t number);
  void Heartbeat(int64_t stream);
  void BeginDraining();
  /// Ends its stream, and dials no more.
  void End();
  bool ended() const {
    const std::lock_guard lock(mutex_);
    return done_;
  }
  void AddTo(Counts& counts) const;
  void AddTo(std::vector<Accepted>& journal) const {
    const std::lock_guard lock(mutex_);
    journal.insert(journal.end(), accepted_.begin(), accepted_.end());
  }

  // What its stream calls.
  bool OnMessage(const proto::ServerMessage& message);
  void OnBroken();
  void OnWritten(bool ok);
  void OnDone();

 private:
  std::shared_ptr<grpc::Channel> NewChannel() const;
  /// Begins what can be begun and writes what can be written; under the lock.
  void Pump();
  void Note(const proto::WorkerMessage& message, int64_t now_ns);
  void NoteGrant(int64_t now_ns);
  void TakeAcknowledged(int64_t now_ns);

  Impl& owner_;
  const size_t index_;
  mutable std::mutex mutex_;
  worker::LeaseDesk desk_;  // guarded by mutex_, as all below
  worker::BackOff back_off_;
  Random random_;
  std::unique_ptr<Stream> stream_;
  int64_t streams_ = 0;
  bool alive_ = false;   ///< the stream may be written to
  bool broken_ = false;  ///< nothing comes from it any more
  bool writing_ = false, welcomed_ = false, worked_ = false;
  bool ending_ = false, done_ = true;
  std::optional<worker::DeskJob> job_;               ///< runs
  int64_t grants_ = 0;                               ///< on this stream
  std::deque<std::pair<int64_t, int64_t>> offered_;  ///< running totals of credit, and when
  std::unordered_map<Hash128, int64_t> sent_;        ///< results on this stream, and when
  int64_t sentinel_ns_ = 0, sentinel_at_ns_ = 0;
  std::vector<Accepted> accepted_;
};

void WorkerLoad::Impl::Stream::OnReadDone(bool ok) {
  if (ok) {
    const auto message = proto::FromWire(in_);
    if (message.ok() && worker_.OnMessage(*message)) return StartRead(&in_);
    context_.TryCancel();
  }
  worker_.OnBroken();
}

void WorkerLoad::Impl::Stream::OnWriteDone(bool ok) { worker_.OnWritten(ok); }

void WorkerLoad::Impl::Stream::OnDone(const grpc::Status& /*status*/) { worker_.OnDone(); }

std::shared_ptr<grpc::Channel> WorkerLoad::Impl::Worker::NewChannel() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A connection of its own.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(static_cast<int>(proto::kMaxMessageBytes));
  const Credentials& credentials = owner_.options_.credentials[index_];
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = credentials.ca;
  tls.pem_private_key = credentials.key;
  tls.pem_cert_chain = credentials.certificate;
  arguments.SetSslTargetNameOverride(kServerName);
  return grpc::CreateCustomChannel(owner_.options_.server, grpc::SslCredentials(tls), arguments);
}

void WorkerLoad::Impl::Worker::Dial() {
  auto channel = NewChannel();
  std::unique_ptr<Stream> before;  // dies after the lock is released
  Stream* fresh = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (ending_ || !done_) return;
    before = std::move(stream_);
    stream_ = std::make_unique<Stream>(*this, ++streams_, std::move(channel));
    fresh = stream_.get();
    ++owner_.streams_;
    done_ = welcomed_ = worked_ = writing_ = broken_ = false;
    grants_ = 0;
    offered_.clear();
    sent_.clear();
    desk_.OnConnected();
  }
  fresh->Begin();
  const std::lock_guard lock(mutex_);
  if (broken_) return;
  alive_ = true;
  Pump();
}

void WorkerLoad::Impl::Worker::Note(const proto::WorkerMessage& message, int64_t now_ns) {
  if (const auto* credit = std::get_if<proto::WorkerCredit>(&message)) {
    offered_.emplace_back(credit->leases, now_ns);
  } else if (const auto* result = std::get_if<proto::WorkResult>(&message)) {
    sent_[result->token] = now_ns;
  }
}

void WorkerLoad::Impl::Worker::NoteGrant(int64_t now_ns) {
  ++grants_;
  while (!offered_.empty() && offered_.front().first < grants_) offered_.pop_front();
  if (!offered_.empty()) owner_.grants.Add(now_ns - offered_.front().second);
}

void WorkerLoad::Impl::Worker::Pump() {
  const int64_t now_ns = owner_.clock_.NowNs();
  if (!job_ && (job_ = desk_.TakeJob())) {
    desk_.Start(job_->number, now_ns);
    const double share = 0.5 + random_.Uniform();
    const auto run_ns = static_cast<int64_t>(share * static_cast<double>(owner_.options_.run_ns));
    owner_.At({now_ns + run_ns, index_, Wake::kFinish, job_->number});
  }
  if (!alive_ || writing_) return;
  if (const auto message = desk_.TakeMessage()) {
    Note(*message, now_ns);
    writing_ = true;
    stream_->Write(*message);
  }
}

void WorkerLoad::Impl::Worker::Finish(int64_t number) {
  const std::lock_guard lock(mutex_);
  if (!job_ || job_->number != number) return;  // it was taken back
  const int64_t run_ns = owner_.options_.run_ns;
  desk_.AddBusy(run_ns);
  desk_.Finish(number, owner_.times_.Answer(job_->job, run_ns));
  job_.reset();
  Pump();
}

void WorkerLoad::Impl::Worker::Heartbeat(int64_t stream) {
  const std::lock_guard lock(mutex_);
  if (!alive_ || stream_->number() != stream) return;
  const int64_t now_ns = owner_.clock_.NowNs();
  owner_.At({now_ns + desk_.heartbeat_ms() * kNsPerMs, index_, Wake::kHeartbeat, stream});
  desk_.Tick(now_ns);
  if (now_ns >= sentinel_at_ns_) {
    sentinel_at_ns_ = now_ns + kSentinelEveryNs + random_.Between(0, kSentinelEveryNs);
    sentinel_ns_ = kSentinelNs + random_.Between(-5000, 5000);
    desk_.SetSentinel(sentinel_ns_);
  }
  // One that cannot be written at once says nothing new; there is another in a second.
  if (writing_) return;
  writing_ = true;
  stream_->Write(desk_.MakeHeartbeat());
}

void WorkerLoad::Impl::Worker::TakeAcknowledged(int64_t now_ns) {
  for (worker::LeaseDesk::Acknowledged& a : desk_.TakeAcknowledged()) {
    if (const auto sent = sent_.find(a.token); sent != sent_.end()) {
      owner_.commits.Add(now_ns - sent->second);
      sent_.erase(sent);
    }
    worked_ = true;
    if (a.verdict == proto::Verdict::kAccepted) {
      ++owner_.acknowledged_;
      accepted_.push_back({a.token, a.session, a.attempt, std::move(a.digest)});
    } else {
      ++owner_.refused_;
    }
  }
}

bool WorkerLoad::Impl::Worker::OnMessage(const proto::ServerMessage& message) {
  const std::lock_guard lock(mutex_);
  const int64_t now_ns = owner_.clock_.NowNs();
  if (std::holds_alternative<proto::Grant>(message)) {
    NoteGrant(now_ns);
    worked_ = true;
  }
  desk_.OnServer(message, now_ns);
  TakeAcknowledged(now_ns);
  for (const int64_t number : desk_.TakeCancelled()) {
    if (job_ && job_->number == number) job_.reset();
  }
  if (std::holds_alternative<proto::Welcome>(message)) {
    welcomed_ = true;
    back_off_.Reset();
    const int64_t first_ns = random_.Between(0, desk_.heartbeat_ms()) * kNsPerMs;
    owner_.At({now_ns + first_ns, index_, Wake::kHeartbeat, stream_->number()});
  }
  Pump();
  return true;
}

void WorkerLoad::Impl::Worker::OnBroken() {
  Stream* stream = nullptr;
  {
    const std::lock_guard lock(mutex_);
    broken_ = true;
    alive_ = welcomed_ = worked_ = false;
    desk_.OnDisconnected();
    stream = stream_.get();
  }
  stream->Release();
}

void WorkerLoad::Impl::Worker::OnWritten(bool ok) {
  const std::lock_guard lock(mutex_);
  writing_ = false;
  if (ok) Pump();
}

void WorkerLoad::Impl::Worker::OnDone() {
  const std::lock_guard lock(mutex_);
  done_ = true;
  alive_ = false;
  if (!ending_) owner_.At({owner_.clock_.NowNs() + back_off_.NextNs(), index_, Wake::kDial, 0});
}

void WorkerLoad::Impl::Worker::BeginDraining() {
  const std::lock_guard lock(mutex_);
  desk_.BeginDraining();
  Pump();
}

void WorkerLoad::Impl::Worker::End() {
  const std::lock_guard lock(mutex_);
  ending_ = true;
  if (!done_) stream_->Cancel();
}

void WorkerLoad::Impl::Worker::AddTo(Counts& counts) const {
  const std::lock_guard lock(mutex_);
  counts.connected += welcomed_ ? 1 : 0;
  counts.working += worked_ ? 1 : 0;
  counts.held += static_cast<int64_t>(desk_.MakeHeartbeat().held.size());
}

WorkerLoad::Impl::Impl(Options options, const MonotonicClock& clock)
    : options_(std::move(options)), clock_(clock) {
  proto::Hello hello{.protocol = kProtocolVersion,
                     .builder_version = options_.builder_version,
                     .measurement_policy = kCpuVersions.measurement_policy,
                     .program_version = kProgramVersion};
  constexpr int64_t kMemoryBytes = int64_t{64} << 30;
  hello.device = {.name = "cpu:0",
                  .device_class = options_.device_class,
                  .fingerprint = "simulated",
                  .target = options_.target,
                  .cores = options_.cores,
                  .memory_bytes = kMemoryBytes};
  for (size_t i = 0; i < options_.credentials.size(); ++i) {
    hello.instance = RandomId();
    workers_.push_back(std::make_unique<Worker>(*this, i, hello));
  }
  thread_ = std::thread([this] { TimerLoop(); });
}

void WorkerLoad::Impl::Start(int64_t ramp_ns) {
  const int64_t now_ns = clock_.NowNs();
  const auto n = static_cast<int64_t>(workers_.size());
  for (int64_t i = 0; i < n; ++i) {
    At({now_ns + ramp_ns * i / n, static_cast<size_t>(i), Wake::kDial, 0});
  }
}

void WorkerLoad::Impl::At(const Timer& timer) {
  {
    const std::lock_guard lock(mutex_);
    const bool first = timers_.empty() || timer.at_ns < timers_.top().at_ns;
    timers_.push(timer);
    if (!first) return;
  }
  changed_.notify_one();
}

void WorkerLoad::Impl::TimerLoop() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const int64_t now_ns = clock_.NowNs();
    if (timers_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const Timer timer = timers_.top();
    if (timer.at_ns > now_ns) {
      WaitFor(changed_, lock, timer.at_ns - now_ns);
      continue;
    }
    timers_.pop();
    lock.unlock();
    Worker& worker = *workers_[timer.worker];
    if (timer.wake == Wake::kDial) {
      worker.Dial();
    } else if (timer.wake == Wake::kFinish) {
      worker.Finish(timer.number);
    } else {
      worker.Heartbeat(timer.number);
    }
    lock.lock();
  }
}

void WorkerLoad::Impl::BeginDraining() {
  for (const auto& worker : workers_) worker->BeginDraining();
}

void WorkerLoad::Impl::Stop() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopping_, true)) return;
  }
  changed_.notify_all();
  thread_.join();
  for (const auto& worker : workers_) worker->End();
  constexpr int64_t kLookNs = 5 * kNsPerMs;
  while (!std::ranges::all_of(workers_, [](const auto& w) { return w->ended(); })) {
    clock_.SleepNs(kLookNs);
  }
}

WorkerLoad::Counts WorkerLoad::Impl::counts() const {
  Counts counts{.acknowledged = acknowledged_, .refused = refused_, .streams = streams_};
  for (const auto& worker : workers_) worker->AddTo(counts);
  return counts;
}

std::vector<WorkerLoad::Accepted> WorkerLoad::Impl::Journal() const {
  std::vector<Accepted> journal;
  for (const auto& worker : workers_) worker->AddTo(journal);
  return journal;
}

WorkerLoad::WorkerLoad(Options options, const MonotonicClock& clock)
    : impl_(new Impl(std::move(options), clock)) {}
WorkerLoad::~WorkerLoad() = default;
void WorkerLoad::Start(int64_t ramp_ns) { impl_->Start(ramp_ns); }
void WorkerLoad::BeginDraining() { impl_->BeginDraining(); }
void WorkerLoad::Stop() { impl_->Stop(); }
const Latencies& WorkerLoad::grants() const { return impl_->grants; }
const Latencies& WorkerLoad::commits() const { return impl_->commits; }
WorkerLoad::Counts WorkerLoad::counts() const { return impl_->counts(); }
std::vector<WorkerLoad::Accepted> WorkerLoad::Journal() const { return impl_->Journal(); }

}  // namespace hone::bench
