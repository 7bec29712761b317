#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "absl/status/status.h"

#include "search/tuner.h"

namespace hone::search {

/// Events of a shared search on their way into its Tuner. A member's results become durable at
/// once, however long another member takes to propose. The Tuner applies them, in the log's order,
/// when it is used next. Proposals need no place in this order: the state is the same whether they
/// come before or after another member's results. Thread-safe.
class TunerQueue {
 public:
  using Apply = std::function<void(Tuner& tuner)>;
  using Done = std::function<void(const absl::Status& status)>;
  /// Begins to make an event durable and returns at once; calls `done` once, on any thread, when it
  /// is durable or cannot be. What is begun first becomes durable first.
  using Begin = std::function<void(Done done)>;

  TunerQueue();

  /// Puts an event behind those of all threads before. When it is durable, `apply` is due.
  void Post(const Begin& begin, Apply apply);
  /// Applies the events that are durable, up to the first that is not yet.
  void ApplyTo(Tuner& tuner);
  /// Waits until everything posted is durable or has failed. While the result lives nobody posts.
  [[nodiscard]] std::unique_lock<std::mutex> Hold();

 private:
  struct State;
  std::mutex order_;              ///< held while an event is begun
  std::shared_ptr<State> state_;  ///< of `done` too, which may come late
};

}  // namespace hone::search
