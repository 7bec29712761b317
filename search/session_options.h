#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "base/core/hash128.h"
#include "db/database.h"
#include "ir/accuracy_class.h"
#include "ir/target.h"
#include "search/shared_tuner.h"

namespace hone::search {

/// What a session shall do, with what, and until when.
struct SessionOptions {
  std::string request;   ///< JSON; the same request finds its unfinished session again
  std::string versions;  ///< JSON of version numbers
  uint64_t seed = 0;
  int64_t trials = 0;         ///< 0: no such limit
  double seconds = 600;       ///< 0: no such limit; counted across restarts
  int64_t until_unix_ns = 0;  ///< 0: no such limit
  /// Called with TuningSession::SecondsLeft, about once a second while it searches and before each
  /// comparison, where there is a date: the wall clock may be set at any time. Unset: nothing is
  /// called.
  std::function<void(double)> tell_seconds_left;
  /// One comparison may run for so long; 0: no such limit.
  double run_seconds = 0;
  ir::Target target;
  ir::AccuracyClass accuracy = ir::AccuracyClass::kDefault;
  db::Device device;
  /// Nothing is measured: the Measurer says whether a candidate can be built, the analytic model of
  /// the target's kind how fast it is. `device` is db::PredictedDevice; records are predicted, no
  /// model is trained, and nothing is compared.
  bool predicted = false;
  std::string builder_version;
  /// False: no trees are trained, the analytic model ranks to the end.
  bool train = true;
  bool evolve = true;  ///< as TunerOptions::evolve
  const std::atomic<bool>* interrupted = nullptr;  ///< set by a signal: finish the record and stop
  /// Free on the log's disk; less than the least ends as `interrupted` does. Unset: unknown.
  std::function<int64_t()> free_bytes;
  int64_t least_free_bytes = 64'000'000;
  double used_seconds = 0;  ///< of the time budget, before Start
  /// Measures finalists with fewer threads than the target has, too, where that may be as fast: the
  /// log says then how many look-ups give (db::Lookup::ThreadsOf). For a Measurer on this machine.
  bool choose_threads = false;
  /// Kept at the end, of `seconds` and before the date, for what comes last (`before_end`).
  double reserve_seconds = 0;
  /// Called once after the comparisons of finalists unless interrupted: the comparison of whole
  /// models, which adds its facts through TuningSession::AddVerdict. Its error ends the session.
  std::function<absl::Status(class TuningSession&)> before_end;
  /// A new session's id; zero: random. One that goes on keeps its own.
  Hash128 id;
  /// Makes a batch durable together with the end of what its results answer; unset: the log's
  /// Append. A farm ends leases in the same transaction.
  std::function<absl::Status(const db::Batch&)> commit_results;
  /// The same without waiting: returns at once and calls `done` once, on any thread, when the batch
  /// is durable or cannot be; what is begun first becomes durable first, whoever's it is. With it a
  /// member of a shared search proposes and trains on a thread of its own, beside its results.
  std::function<void(db::Batch batch, TunerQueue::Done done)> begin_results;
  /// Likewise, of what answers nothing; set with begin_results, whose order it shares.
  std::function<void(db::Batch batch, TunerQueue::Done done)> begin_append;
  /// The search to be a member of, under `id`; unset: one of its own. Called again when the one it
  /// gave has ended meanwhile.
  std::function<absl::StatusOr<std::shared_ptr<SharedTuner>>()> join;
  /// A member's attempts have this number or a larger one; what its log holds raises it.
  int64_t first_attempt = 0;
};

}  // namespace hone::search
