#include "db/model_verdict.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>

#include "fmt/format.h"

#include "base/core/random_id.h"
#include "base/core/words.h"
#include "ir/kind_facts.h"

namespace hone::db {
namespace {

using Subject = ModelVerdict::Subject;

/// By subject: that the first of what is compared stays, that the second won.
constexpr const char* kWords[][2] = {{"keeps_defaults", "won"},
                                     {"batch_together", "batch_each"},
                                     {"branches_in_turn", "branches_beside"},
                                     {"cascades_off", "cascades_on"}};

const char* WordOf(const ModelVerdict& v) {
  return kWords[static_cast<size_t>(v.subject)][v.keeps_defaults ? 0 : 1];
}

std::string ListText(const std::vector<Hash128>& hashes) {
  std::string text;
  for (const Hash128& hash : hashes) text += (text.empty() ? "" : ",") + hash.ToHex();
  return text.empty() ? "-" : text;
}

bool Holds(const std::vector<Hash128>& hashes, const Hash128& hash) {
  return std::find(hashes.begin(), hashes.end(), hash) != hashes.end();
}

bool IsOf(const ModelVerdict& verdict, const RecordKey& key) {
  return SameButExtensions(verdict.target, key.target) &&
         verdict.device_class == key.device_class &&
         verdict.measurement_policy == key.measurement_policy && verdict.accuracy <= key.accuracy;
}

bool Names(const ModelVerdict& verdict, const RecordKey& key) {
  return verdict.keeps_defaults || Holds(verdict.tuned, key.workload) ||
         Holds(verdict.put_back, key.workload);
}

/// Which of two that count goes first; then the newer one.
auto Place(const ModelVerdict& v) { return std::pair(-static_cast<int>(v.accuracy), v.merged); }

}  // namespace

Hash128 ModelHash(std::vector<std::pair<Hash128, int64_t>> tasks) {
  std::map<Hash128, int64_t> counts;
  for (const auto& [workload, count] : tasks) {
    if (count > 0) counts[workload] += count;
  }
  std::string text = "model 1\n";
  for (const auto& [workload, count] : counts)
    text += fmt::format("{} {}\n", workload.ToHex(), count);
  return HashBytes(text);
}

std::pair<Hash128, Hash128> VerdictIds(const Hash128& model) {
  return {{model.high, 0}, {model.high, std::numeric_limits<uint64_t>::max()}};
}

Event EventOf(const ModelVerdict& v) {
  return {.id = {v.model.high, RandomId().low},
          .session = v.session,
          .type = kModelVerdict,
          .payload = fmt::format("{} {} {} {} {} {:.1f} {:.1f} {:.5f} {:.5f} {:.5f} {} {} {} {}",
                                 v.model.ToHex(), static_cast<int>(v.accuracy),
                                 v.measurement_policy, v.target, WordOf(v), v.default_ns,
                                 v.tuned_ns, v.ratio, v.ratio_low, v.ratio_high, v.rounds,
                                 ListText(v.tuned), ListText(v.put_back), v.device_class)};
}

std::optional<ModelVerdict> VerdictOf(const Event& event, bool merged) {
  if (event.type != kModelVerdict) return std::nullopt;
  Words words(event.payload);
  ModelVerdict v;
  v.model = words.Hash();
  const int accuracy = words.Number<int>();
  v.accuracy = static_cast<ir::AccuracyClass>(std::clamp(accuracy, 0, 2));
  v.measurement_policy = words.Number<int>();
  v.target = words.Word();
  const std::string_view word = words.Word();
  for (size_t subject = 0; subject < std::size(kWords); ++subject) {
    if (word != kWords[subject][0] && word != kWords[subject][1]) continue;
    v.subject = static_cast<Subject>(subject);
    v.keeps_defaults = word == kWords[subject][0];
  }
  v.default_ns = words.Number<double>();
  v.tuned_ns = words.Number<double>();
  v.ratio = words.Number<double>();
  v.ratio_low = words.Number<double>();
  v.ratio_high = words.Number<double>();
  v.rounds = words.Number<int64_t>();
  v.tuned = words.Hashes();
  v.put_back = words.Hashes();
  v.device_class = words.Rest();
  v.session = event.session;
  v.merged = merged;
  const bool fits = !words.bad() && word == WordOf(v) && accuracy == static_cast<int>(v.accuracy);
  return fits ? std::optional(std::move(v)) : std::nullopt;
}

bool SameButExtensions(std::string_view target, std::string_view other) {
  return ir::SameButExtensions(target, other);
}

const ModelVerdict* KeepsDefault(absl::Span<const ModelVerdict> verdicts, const RecordKey& key) {
  const ModelVerdict* last = nullptr;
  for (const ModelVerdict& v : verdicts) {
    if (v.subject != Subject::kTuning || !IsOf(v, key) || !Names(v, key)) continue;
    if (last == nullptr || Place(v) < Place(*last)) last = &v;
  }
  const bool by_default =
      last != nullptr && (last->keeps_defaults || Holds(last->put_back, key.workload));
  return by_default ? last : nullptr;
}

const ModelVerdict* OnSubject(absl::Span<const ModelVerdict> verdicts, const RecordKey& key,
                              Subject subject) {
  const ModelVerdict* last = nullptr;
  for (const ModelVerdict& v : verdicts) {
    if (v.subject != subject || !IsOf(v, key)) continue;
    if (last == nullptr || Place(v) < Place(*last)) last = &v;
  }
  return last;
}

std::string WhyDefault(const ModelVerdict& v) {
  const std::string session =
      fmt::format("(session {}{})", v.session.ToHex(), v.merged ? ", merged from another log" : "");
  if (!v.keeps_defaults) {
    return fmt::format(
        "put back: in this model the default is faster {}; tune the model again to "
        "have it judged again",
        session);
  }
  return fmt::format(
      "this model keeps its defaults: tuned it was {:.2f} x as fast [{:.2f}, {:.2f}] {}; tune the "
      "model again to have it judged again",
      v.ratio, v.ratio_low, v.ratio_high, session);
}

}  // namespace hone::db
