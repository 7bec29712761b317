#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "db/database.h"
#include "db/workload_distance.h"

namespace hone::db {

/// From where a kernel's Trace comes, best first. The names stand in packages.
enum class Rung : uint8_t {
  kExact = 0,      ///< a record of this very key
  kThreads = 1,    ///< of other threads or another device class, same ISA
  kPredicted = 2,  ///< of this Workload, by the analytic model; where the asker takes those
  kNearest = 3,    ///< of a Workload of the same form with other extents, to be transplanted
  kDefault = 4,    ///< no record: the default schedule
};

/// "exact", "threads", "predicted", "nearest", "default".
std::string_view RungName(Rung rung);
/// The inverse; nullopt for other texts.
std::optional<Rung> ParseRung(std::string_view name);

/// The N of a target text's ",threads=N"; 1 where there is none.
int ThreadsOfTarget(const std::string& target);
/// The target with another number of threads.
std::string WithThreads(const std::string& target, int threads);

/// A record of another Workload whose Trace may be transplanted.
struct NearCandidate {
  WorkloadRow workload;
  RankedRecord record;
  double distance = 0;  ///< WorkloadDistance

  bool operator==(const NearCandidate&) const = default;
};

/// A record that would have answered but does not replay any more.
struct StaleRecord {
  Hash128 id;
  std::string why;

  bool operator==(const StaleRecord&) const = default;
};

struct LookupAnswer {
  Rung rung = Rung::kDefault;
  std::optional<RankedRecord> record;     ///< kExact, kThreads, kPredicted: it replays
  std::vector<NearCandidate> candidates;  ///< kNearest: nearest first, at least one; untried
  std::string why;                        ///< one line: what answered, and what was missing above
  /// kDefault: a verdict of the model says so, and not that nothing better is known.
  bool judged = false;
  bool predicted = false;  ///< a prediction would have answered, but the caller ignores predictions
  std::vector<StaleRecord> stale;
};

/// What a look-up does with predictions where nothing measured answers: it does not read them, says
/// that there are some, or takes the best.
enum class Predictions : uint8_t { kIgnored, kTold, kTaken };

/// Replays a record's Trace for the Workload and Target that are looked up; an error says why it
/// cannot be used.
using ReplayCheck = std::function<absl::Status(const TuningRecord& record)>;

/// The look-up ladder, below the verdicts of the model that asks, over one state of a log: it reads
/// what it needs as it is asked, so keep it inside a ReadScope where the log is live. One thread at
/// a time.
class Lookup {
 public:
  /// Records tried on a rung before the next one is taken, and candidates returned of the nearest.
  static constexpr int kMaxTried = 16;

  /// `database` must outlive this. `builder_version` is the one in use: records of others count as
  /// screened, and the answer says so. `model` is the ModelHash of the model that asks; without one
  /// no verdict applies.
  Lookup(Database& database, std::string builder_version, std::optional<Hash128> model = {},
         Predictions predictions = Predictions::kIgnored)
      : database_(database),
        builder_version_(std::move(builder_version)),
        model_(model),
        predictions_(predictions) {}

  /// The first rung that answers. `workload_text` is the canonical text of key.workload.
  absl::StatusOr<LookupAnswer> Find(const RecordKey& key, std::string_view workload_text,
                                    const ReplayCheck& replay);

  /// The best records of Workloads of the same form, nearest first, at most kMaxTried; that of the
  /// key's own Workload is not among them.
  absl::StatusOr<std::vector<NearCandidate>> Nearest(const RecordKey& key,
                                                     std::string_view workload_text);

  /// With how many threads to run what answered exactly: the fewest (1, 2, 4, ...) with which its
  /// Trace was measured on the same device class and was as fast. Else those of its target.
  absl::StatusOr<int> ThreadsOf(const RankedRecord& answered);

  /// What is near is read anew: the database knows of other Workloads now.
  void ForgetNear() { forms_.clear(); }

 private:
  struct FormRow {
    WorkloadRow workload;
    WorkloadForm form;
  };

  /// Takes the first of `records` that replays; the others before it become stale.
  static bool TakeFirst(std::vector<RankedRecord> records, Rung rung, const ReplayCheck& replay,
                        LookupAnswer& answer);
  /// Whether a prediction answers.
  absl::StatusOr<bool> TakePredicted(const RecordKey& key, const ReplayCheck& replay,
                                     LookupAnswer& answer);
  absl::StatusOr<const std::vector<FormRow>*> FormsOf(const std::string& isa, int policy);

  /// The verdict that says default for the key, if one does.
  absl::StatusOr<const ModelVerdict*> JudgedDefault(const RecordKey& key);

  Database& database_;
  const std::string builder_version_;
  const std::optional<Hash128> model_;
  const Predictions predictions_;
  std::optional<std::vector<ModelVerdict>> verdicts_;  // of model_, once one was asked for
  std::map<std::pair<std::string, int>, std::vector<FormRow>> forms_;  // by ISA and policy
};

}  // namespace hone::db
