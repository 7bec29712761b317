#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"

#include "db/record.h"

// What the comparison of a whole model says, of default against tuned or of the two ways to run its
// batch or its branches: an event of the log, which binds the look-ups of that model and of no
// other.
namespace hone::db {

/// A model as look-ups know it: the hash of its Workloads, each with how often it occurs. Order,
/// counts of 0 and whether equal Workloads are listed apart change nothing. docs/formats/log.md
Hash128 ModelHash(std::vector<std::pair<Hash128, int64_t>> tasks);

/// One comparison of a model in turns, end to end.
struct ModelVerdict {
  Hash128 model;  ///< ModelHash
  // What was compared: as in RecordKey.
  std::string target;
  std::string device_class;
  ir::AccuracyClass accuracy = ir::AccuracyClass::kDefault;
  int measurement_policy = 0;

  /// What was compared (`default_ns` against `tuned_ns`).
  enum class Subject : uint8_t {
    kTuning,    ///< default and tuned
    kBatch,     ///< the images of its batch together, and one after the other; `model` is that of
                ///< all images together
    kBranches,  ///< its branches in turn, and side by side
    kCascades,  ///< each layer a kernel, and chains of them in bands; `model` is that of the former
  };
  Subject subject = Subject::kTuning;
  bool keeps_defaults = false;  ///< what comes first in these stays
  double default_ns = 0, tuned_ns = 0;
  double ratio = 0, ratio_low = 0, ratio_high = 0;  ///< default over tuned, paired; its interval
  int64_t rounds = 0;
  std::vector<Hash128> tuned;     ///< Workloads that ran with another Trace than by default
  std::vector<Hash128> put_back;  ///< Workloads whose change lost: by default in what was compared

  // Where it stands; not in the event's payload.
  Hash128 session;
  bool merged = false;  ///< from another log

  bool operator==(const ModelVerdict&) const = default;
};

/// Event::type of a verdict.
inline constexpr char kModelVerdict[] = "model_verdict";

/// The event of a verdict. Its id begins with the model's hash, so that the log finds all of a
/// model by their ids.
Event EventOf(const ModelVerdict& verdict);
/// Ids of a model's verdicts lie between these two.
std::pair<Hash128, Hash128> VerdictIds(const Hash128& model);
/// The inverse of EventOf; nothing where the event is none, or one of a newer Hone.
std::optional<ModelVerdict> VerdictOf(const Event& event, bool merged);

/// Whether two targets differ in nothing but extensions (`+vnni`): a verdict is of those that any
/// kernel of its model uses, a record of those that its Workload does.
bool SameButExtensions(std::string_view target, std::string_view other);

/// The verdict by which a look-up of `key` in its model answers with the default; null where none
/// says so. `verdicts` are those of the model, newest first. Those of the same target (extensions
/// aside), device class and policy count, of the same accuracy class or a stricter one: this class
/// first, then those of this log, then the newest. The first that has the Workload in it decides.
const ModelVerdict* KeepsDefault(absl::Span<const ModelVerdict> verdicts, const RecordKey& key);

/// The verdict on how the model's batch or its branches run, chosen among `verdicts` in the same
/// way; null where there is none. No Workload is asked for: `key.workload` does not count.
const ModelVerdict* OnSubject(absl::Span<const ModelVerdict> verdicts, const RecordKey& key,
                              ModelVerdict::Subject subject);

/// One line for people: that the model keeps its defaults, with the interval, or that this kernel
/// was put back in it, and by which session. Only of a verdict on a tuning.
std::string WhyDefault(const ModelVerdict& verdict);

}  // namespace hone::db
