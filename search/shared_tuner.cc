#include "search/shared_tuner.h"

#include <fmt/format.h>

#include <utility>

#include "base/core/random_id.h"
#include "base/log.h"
#include "base/status.h"
#include "costmodel/xgboost_model.h"
#include "ir/text.h"

namespace hone::search {
namespace {

absl::Status LoadModel(db::Database& database, const ModelEvent& event, SharedTuner& shared) {
  HONE_ASSIGN_OR_RETURN(std::optional<std::string> bytes, database.FindBlob(event.digest));
  if (!bytes)
    return absl::DataLossError(
        fmt::format("the log lacks the model {} that its events name", event.digest));
  auto model = costmodel::XgboostModel::Load(*bytes, shared.tuner.target().text);
  if (absl::IsInvalidArgument(model.status())) {
    // A Hone with other features wrote it: the analytic model ranks until the next training.
    shared.tuner.SetModel(nullptr);
    return absl::OkStatus();
  }
  HONE_RETURN_IF_ERROR(model.status());
  shared.tuner.SetModel(*std::move(model));
  shared.rows_at_training = event.rows;
  return absl::OkStatus();
}

/// Starts of honed in a row that did not outlive a stream's replay; it is not tried again.
constexpr int kMostDeaths = 2;

int DeathsOf(const std::vector<db::Event>& events) {
  int deaths = 0;
  for (const db::Event& e : events) {
    if (e.type == OpeningEvent::kType) ++deaths;
    if (e.type == OpenedEvent::kType) deaths = 0;
  }
  return deaths;
}

}  // namespace

absl::Status ReplayStream(db::Database& database, const std::vector<db::Event>& events,
                          SharedTuner& shared) {
  const auto workload_of =
      [&](const Hash128& hash) -> absl::StatusOr<std::shared_ptr<const ir::Workload>> {
    HONE_ASSIGN_OR_RETURN(const auto row, database.FindWorkload(hash));
    if (!row) return absl::DataLossError("the log lacks the workload " + hash.ToHex());
    HONE_ASSIGN_OR_RETURN(ir::Workload workload, ir::ParseWorkload(row->text));
    return std::make_shared<const ir::Workload>(std::move(workload));
  };
  size_t last_model = events.size();
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i].type == ModelEvent::kType) last_model = i;
  }
  for (size_t i = 0; i < events.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const SearchEvent event, ParseEvent(events[i]));
    if (const auto* const model = std::get_if<ModelEvent>(&event)) {
      // Searches keep what was best when their model changed; an earlier model itself is past.
      shared.tuner.SetModel(nullptr);
      if (i == last_model) HONE_RETURN_IF_ERROR(LoadModel(database, *model, shared));
    }
    HONE_RETURN_IF_ERROR(shared.tuner.Replay(event, workload_of));
  }
  return absl::OkStatus();
}

void TakeOut(SharedTuner& shared, const Hash128& member, db::Batch& batch) {
  if (!shared.tuner.HasMember(member)) return;
  shared.tuner.Leave(member);
  batch.events.push_back(StreamEvent(shared.stream, LeaveEvent{member}));
  if (!shared.tuner.Members().empty()) return;
  shared.over = true;
  batch.events.push_back(StreamEvent(shared.stream, FinishedEvent{"its last member has left"}));
}

void SharedTuners::GoOn(std::set<Hash128> sessions) {
  const std::lock_guard lock(mutex_);
  going_on_ = std::move(sessions);
}

absl::StatusOr<std::shared_ptr<SharedTuner>> SharedTuners::Open(db::Database& database,
                                                                const Request& request) const {
  const TunerOptions options{.seed = request.seed, .trials = 0, .accuracy = request.accuracy};
  db::Batch batch;
  HONE_ASSIGN_OR_RETURN(const std::vector<db::StoredSession> sessions, database.Sessions());
  for (auto it = sessions.rbegin(); it != sessions.rend(); ++it) {
    if (it->merged || it->session.request != request.text) continue;
    HONE_ASSIGN_OR_RETURN(const std::vector<db::Event> events, database.EventsOf(it->session.id));
    if (!events.empty() && events.back().type == FinishedEvent::kType) break;
    if (DeathsOf(events) >= kMostDeaths) {
      LogWarning("honed has ended {} times while it replayed the search {}, which is begun anew",
                 kMostDeaths, it->session.id.ToHex());
      batch.events.push_back(
          StreamEvent(it->session.id, FinishedEvent{"honed ended while it was replayed"}));
      break;
    }
    // What a replay does to honed (memory, time, a crash) is no one member's doing.
    db::Batch opening;
    opening.events.push_back(StreamEvent(it->session.id, OpeningEvent{}));
    HONE_RETURN_IF_ERROR(database.Append(opening).status());
    // The seed of whoever began it.
    TunerOptions as_begun = options;
    as_begun.seed = it->session.seed;
    auto shared = std::make_shared<SharedTuner>(request.target, as_begun);
    shared->stream = it->session.id;
    const absl::Status replayed = ReplayStream(database, events, *shared);
    batch.events.push_back(StreamEvent(shared->stream, OpenedEvent{}));
    if (absl::IsFailedPrecondition(replayed) || absl::IsDataLoss(replayed)) {
      // Its records stay, and warm the next one.
      LogWarning("the search {} cannot go on and is begun anew: {}", shared->stream.ToHex(),
                 StatusMessage(replayed));
      batch.events.push_back(StreamEvent(shared->stream, FinishedEvent{StatusMessage(replayed)}));
      break;
    }
    if (!replayed.ok()) {
      // honed lives.
      HONE_RETURN_IF_ERROR(database.Append(batch).status());
      return replayed;
    }
    {
      const std::lock_guard lock(mutex_);
      for (const Hash128& member : shared->tuner.Members()) {
        if (!going_on_.contains(member)) TakeOut(*shared, member, batch);
      }
    }
    if (shared->over) break;
    HONE_RETURN_IF_ERROR(database.Append(batch).status());
    return shared;
  }
  auto shared = std::make_shared<SharedTuner>(request.target, options);
  shared->stream = RandomId();
  db::Session row;
  row.id = shared->stream;
  row.request = request.text;
  row.seed = request.seed;
  row.versions = request.versions;
  row.created_ms = request.now_ms;
  batch.sessions.push_back(std::move(row));
  HONE_RETURN_IF_ERROR(database.Append(batch).status());
  return shared;
}

absl::StatusOr<std::shared_ptr<SharedTuner>> SharedTuners::Get(db::Database& database,
                                                               const Request& request) {
  std::shared_ptr<Slot> slot;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Slot>& known = known_[request.text];
    if (!known) known = std::make_shared<Slot>();
    slot = known;
  }
  const std::lock_guard opening(slot->mutex);
  if (slot->tuner) {
    const std::shared_ptr<SharedTuner> before = slot->tuner;
    const std::lock_guard use(before->mutex);
    if (before->over) slot->tuner = nullptr;
  }
  if (!slot->tuner) {
    HONE_ASSIGN_OR_RETURN(slot->tuner, Open(database, request));
  }
  return slot->tuner;
}

std::vector<std::shared_ptr<SharedTuners::Slot>> SharedTuners::Slots() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Slot>> slots;
  for (const auto& [text, slot] : known_) slots.push_back(slot);
  return slots;
}

absl::Status SharedTuners::Leave(db::Database& database, const Hash128& member) {
  {
    // Whoever opens its search from here on takes it out; who does so now is waited for below.
    const std::lock_guard lock(mutex_);
    going_on_.erase(member);
  }
  for (const std::shared_ptr<Slot>& slot : Slots()) {
    std::shared_ptr<SharedTuner> shared;
    {
      const std::lock_guard opening(slot->mutex);
      shared = slot->tuner;
    }
    if (!shared) continue;
    const auto all = shared->LockAll();
    db::Batch batch;
    TakeOut(*shared, member, batch);
    if (!batch.events.empty()) HONE_RETURN_IF_ERROR(database.Append(batch).status());
  }
  return absl::OkStatus();
}

void SharedTuners::ForgetEnded() {
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [](const auto& item) {
    const std::shared_ptr<Slot>& slot = item.second;
    // Whoever asks for it holds it, or is about to: a slot with another owner stays.
    const std::unique_lock opening(slot->mutex, std::try_to_lock);
    if (!opening.owns_lock() || slot.use_count() > 1) return false;
    const std::shared_ptr<SharedTuner> shared = slot->tuner;
    if (!shared) return true;
    // One that is being used has members.
    const std::unique_lock use(shared->mutex, std::try_to_lock);
    return use.owns_lock() && shared->over;
  });
}

size_t SharedTuners::num_known() const {
  const std::lock_guard lock(mutex_);
  return known_.size();
}

}  // namespace hone::search
