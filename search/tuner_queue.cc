#include "search/tuner_queue.h"

#include <condition_variable>
#include <deque>
#include <utility>

namespace hone::search {

struct TunerQueue::State {
  struct Posted {
    Apply apply;
    bool settled = false, durable = false;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Posted>> posted;  ///< guarded by mutex
  int64_t unsettled = 0;                       ///< guarded by mutex
};

TunerQueue::TunerQueue() : state_(std::make_shared<State>()) {}

void TunerQueue::Post(const Begin& begin, Apply apply) {
  const auto posted = std::make_shared<State::Posted>(State::Posted{.apply = std::move(apply)});
  const std::lock_guard order(order_);
  {
    const std::lock_guard lock(state_->mutex);
    state_->posted.push_back(posted);
    ++state_->unsettled;
  }
  begin([state = state_, posted](const absl::Status& status) {
    {
      const std::lock_guard lock(state->mutex);
      posted->settled = true;
      posted->durable = status.ok();
      --state->unsettled;
    }
    state->changed.notify_all();
  });
}

void TunerQueue::ApplyTo(Tuner& tuner) {
  std::deque<std::shared_ptr<State::Posted>> due;
  {
    const std::lock_guard lock(state_->mutex);
    while (!state_->posted.empty() && state_->posted.front()->settled) {
      due.push_back(std::move(state_->posted.front()));
      state_->posted.pop_front();
    }
  }
  for (const auto& event : due) {
    if (event->durable) event->apply(tuner);
  }
}

std::unique_lock<std::mutex> TunerQueue::Hold() {
  std::unique_lock order(order_);
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->unsettled == 0; });
  return order;
}

}  // namespace hone::search
