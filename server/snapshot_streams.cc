#include "server/snapshot_streams.h"

#include <unistd.h>

#include <fstream>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "fmt/format.h"

#include "base/core/random_id.h"
#include "base/kill_point.h"
#include "base/status.h"
#include "proto/farm_service.h"
#include "proto/limits.h"
#include "server/session_log.h"
#include "server/stream_end.h"
#include "server/work_pool.h"

namespace hone::server {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kMostOfACaller = 2;
constexpr int64_t kMostInAll = 8;

/// A copy without a name, and its digest.
struct Copy {
  std::ifstream file;
  std::string sha256;
};

}  // namespace

/// Makes the copies, and knows every stream that is open.
class SnapshotStreams::Copier {
 public:
  explicit Copier(Context context) : context_(std::move(context)) {}
  ~Copier() { Stop(); }

  std::shared_ptr<Stream> Add(grpc::CallbackServerContext* context,
                              const absl::StatusOr<Identity>& caller);
  const MonotonicClock& clock() const { return context_.loop.clock(); }
  void Remove(Stream* stream);
  void EndExpired();
  void Stop();

 private:
  /// `passing`: it is read once and not kept, as its caller says.
  absl::StatusOr<Copy> Make(const std::string& who, bool passing);
  absl::Status MayOpen(const Identity& caller) const;
  std::vector<std::shared_ptr<Stream>> All();

  const Context context_;
  mutable std::mutex mutex_;
  std::map<Stream*, std::shared_ptr<Stream>> streams_;  // guarded by mutex_
  bool stopping_ = false;                               // guarded by mutex_
  WorkPool pool_{"snapshots", 1};
};

/// A file in chunks, its digest with the last.
class SnapshotStreams::Stream final : public grpc::ServerWriteReactor<v1::SnapshotChunk>,
                                      public std::enable_shared_from_this<Stream> {
 public:
  Stream(Copier& owner, grpc::CallbackServerContext* context, Identity who, bool admitted)
      : owner_(owner), who_(std::move(who)), admitted_(admitted), end_(context) {}

  const Identity& who() const { return who_; }
  /// Not one that only says why there is none.
  bool admitted() const { return admitted_; }

  void Begin(absl::StatusOr<Copy> copy) {
    const std::lock_guard lock(mutex_);
    if (!copy.ok()) return EndLocked(copy.status());
    copy_ = *std::move(copy);
    NextLocked();
  }
  void End(const absl::Status& status) {
    const std::lock_guard lock(mutex_);
    EndLocked(status);
  }
  bool ended() {
    const std::lock_guard lock(mutex_);
    return end_.begun();
  }
  void CutWhenLate(int64_t now_ns) { end_.CutWhenLate(now_ns); }

  void OnWriteDone(bool ok) override {
    KillPoint("honed.sending");
    const std::lock_guard lock(mutex_);
    if (ok && !last_) return NextLocked();
    EndLocked(absl::OkStatus());
  }
  void OnCancel() override { End(absl::CancelledError("the client has gone")); }
  void OnDone() override {
    {
      const std::lock_guard lock(mutex_);
      end_.Done();
    }
    owner_.Remove(this);
  }

 private:
  void NextLocked() {
    if (end_.begun()) return;
    std::string data(proto::kChunkBytes, '\0');
    copy_.file.read(data.data(), static_cast<std::streamsize>(data.size()));
    data.resize(static_cast<size_t>(copy_.file.gcount()));
    last_ = data.size() < proto::kChunkBytes;
    out_.set_data(std::move(data));
    if (last_) out_.set_sha256(copy_.sha256);
    StartWrite(&out_);
  }
  void EndLocked(const absl::Status& status) {
    if (end_.Begin(status, owner_.clock().NowNs())) Finish(proto::ToGrpc(status));
  }

  Copier& owner_;
  const Identity who_;
  const bool admitted_;
  std::mutex mutex_;
  Copy copy_;  // guarded by mutex_, as all below
  v1::SnapshotChunk out_;
  bool last_ = false;
  StreamEnd end_;
};

absl::Status SnapshotStreams::Copier::MayOpen(const Identity& caller) const {
  if (stopping_) return absl::UnavailableError("honed is ending");
  const std::string uri = caller.Uri();
  int64_t of_caller = 0, in_all = 0;
  for (const auto& [key, stream] : streams_) {
    if (!stream->admitted()) continue;
    ++in_all;
    of_caller += stream->who().Uri() == uri ? 1 : 0;
  }
  if (of_caller >= kMostOfACaller) {
    return absl::ResourceExhaustedError(fmt::format(
        "{} fetches {} snapshots already; try again when one has come", uri, of_caller));
  }
  if (in_all >= kMostInAll) {
    return absl::ResourceExhaustedError(
        fmt::format("{} snapshots are on their way already, try later", in_all));
  }
  return absl::OkStatus();
}

std::shared_ptr<SnapshotStreams::Stream> SnapshotStreams::Copier::Add(
    grpc::CallbackServerContext* context, const absl::StatusOr<Identity>& caller) {
  std::shared_ptr<Stream> stream;
  absl::Status may = caller.status();
  {
    const std::lock_guard lock(mutex_);
    if (may.ok()) may = MayOpen(*caller);
    stream = std::make_shared<Stream>(*this, context, caller.ok() ? *caller : Identity{}, may.ok());
    streams_[stream.get()] = stream;
  }
  if (!may.ok()) {
    stream->End(may);
  } else if (!pool_.Add(
                 [this, stream, passing = context->client_metadata().contains(proto::kPassingKey)] {
                   // Whoever has gone meanwhile gets no copy.
                   if (!stream->ended()) stream->Begin(Make(stream->who().Uri(), passing));
                 })) {
    stream->End(absl::ResourceExhaustedError("honed is overloaded, try later"));
  }
  return stream;
}

void SnapshotStreams::Copier::Remove(Stream* stream) {
  std::shared_ptr<Stream> last;  // dies after the lock is released
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  last = std::move(found->second);
  streams_.erase(found);
}

std::vector<std::shared_ptr<SnapshotStreams::Stream>> SnapshotStreams::Copier::All() {
  std::vector<std::shared_ptr<Stream>> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, stream] : streams_) all.push_back(stream);
  return all;
}

void SnapshotStreams::Copier::EndExpired() {
  const int64_t now_s = context_.wall_clock.UnixNs() / kNsPerSecond;
  for (const auto& stream : All()) {
    stream->CutWhenLate(clock().NowNs());
    const Identity& who = stream->who();
    if (who.expires_unix_s > now_s && !context_.workers.Refused(who.Uri())) continue;
    stream->End(absl::UnauthenticatedError(
        fmt::format("the certificate of {} has expired or was revoked", who.Uri())));
  }
}

void SnapshotStreams::Copier::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  for (const auto& stream : All()) stream->End(absl::UnavailableError("honed is ending"));
  pool_.Stop();
}

absl::StatusOr<Copy> SnapshotStreams::Copier::Make(const std::string& who, bool passing) {
  const std::string path = fmt::format("{}.snapshot.{}", context_.log_path, RandomId().ToHex());
  const auto reader = SharedReader::Open(context_.log_path);
  if (!reader.ok()) {
    // A log that was moved away is the farm's trouble: the loop has the words for who asks.
    HONE_RETURN_IF_ERROR(context_.loop.Ask({}));
    return reader.status();
  }
  Copy copy;
  HONE_ASSIGN_OR_RETURN(copy.sha256,
                        (*reader)->With([&](db::LogFile& log) { return log.Snapshot(path); }));
  KillPoint("honed.copied");
  copy.file.open(path, std::ios::binary);
  ::unlink(path.c_str());
  if (!copy.file) return absl::InternalError("the snapshot cannot be read again");
  // The audit names the caller before the log's facts leave the farm.
  HONE_RETURN_IF_ERROR(context_.loop.Ask(
      {.prepare =
           [&](Farm&, db::FarmStore&, db::FarmUnit& unit, int64_t) {
             unit.changes.push_back(db::FarmAudit{.at_ms = context_.wall_clock.UnixNs() / kNsPerMs,
                                                  .actor = who,
                                                  .action = passing ? "read" : "publish",
                                                  .subject = "sha256:" + copy.sha256});
             return absl::OkStatus();
           },
       .done = {}}));
  return copy;
}

SnapshotStreams::SnapshotStreams(Context context) : copier_(new Copier(std::move(context))) {}
SnapshotStreams::~SnapshotStreams() = default;

grpc::ServerWriteReactor<v1::SnapshotChunk>* SnapshotStreams::Open(
    grpc::CallbackServerContext* context, const absl::StatusOr<Identity>& caller) {
  return copier_->Add(context, caller).get();
}
void SnapshotStreams::EndExpired() { copier_->EndExpired(); }
void SnapshotStreams::Stop() { copier_->Stop(); }

}  // namespace hone::server
