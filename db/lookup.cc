#include "db/lookup.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <tuple>

#include "fmt/core.h"

#include "base/status.h"
#include "db/prediction.h"

namespace hone::db {
namespace {

constexpr std::array<std::string_view, 5> kRungNames = {"exact", "threads", "predicted", "nearest",
                                                        "default"};

// Lower is better: the same device with a similar number of threads, then other devices.
auto Strangeness(const RecordKey& wanted, const RecordKey& found) {
  const double ratio = static_cast<double>(ThreadsOfTarget(found.target)) /
                       static_cast<double>(ThreadsOfTarget(wanted.target));
  return std::tuple(found.device_class != wanted.device_class, std::abs(std::log2(ratio)));
}

std::string Describe(const RankedRecord& ranked) {
  std::string text =
      fmt::format("record {} ({}", ranked.record.id.ToHex(), RigorName(ranked.rigor));
  if (ranked.merged) text += ", merged from another log";
  if (ranked.other_builder) text += ", made with builder " + ranked.record.builder_version;
  if (ranked.record.noisy) text += ", noisy";
  return text + ")";
}

std::string WhyOf(const LookupAnswer& answer, const RecordKey& key) {
  std::string text;
  switch (answer.rung) {
    case Rung::kExact: text = Describe(*answer.record); break;
    case Rung::kThreads:
      text = fmt::format("{} of {} on {}; none of {} on {}", Describe(*answer.record),
                         answer.record->record.key.target, answer.record->record.key.device_class,
                         key.target, key.device_class);
      break;
    case Rung::kPredicted:
      text = fmt::format("{}: nothing measured of workload {} on {}", Describe(*answer.record),
                         key.workload.ToHex(), IsaOfTarget(key.target));
      break;
    case Rung::kNearest:
      text = fmt::format("{} of workload {}; none of workload {}",
                         Describe(answer.candidates[0].record),
                         answer.candidates[0].workload.hash.ToHex(), key.workload.ToHex());
      break;
    case Rung::kDefault:
      text = fmt::format("no record of workload {} or one of its form for {}", key.workload.ToHex(),
                         IsaOfTarget(key.target));
      break;
  }
  if (answer.predicted) text += "; a predicted record stands there, for --allow-predicted";
  if (!answer.stale.empty()) {
    text += fmt::format("; {} stale, e.g. {}: {}", answer.stale.size(), answer.stale[0].id.ToHex(),
                        answer.stale[0].why);
  }
  return text;
}

/// A Trace that was slower by more was measured with fewer threads for another purpose than to
/// replace them.
constexpr double kMostSlower = 1.1;
/// Threads surely pay for a kernel that takes longer with them: nothing is asked.
constexpr double kLongNs = 200'000;

}  // namespace

int ThreadsOfTarget(const std::string& target) {
  const size_t at = target.find(",threads=");
  return at == std::string::npos ? 1 : std::max(std::atoi(target.c_str() + at + 9), 1);
}

std::string WithThreads(const std::string& target, int threads) {
  return fmt::format("{},threads={}", IsaOfTarget(target), threads);
}

std::string_view RungName(Rung rung) { return kRungNames[static_cast<size_t>(rung)]; }

std::optional<Rung> ParseRung(std::string_view name) {
  for (size_t i = 0; i < kRungNames.size(); ++i) {
    if (kRungNames[i] == name) return static_cast<Rung>(i);
  }
  return std::nullopt;
}

bool Lookup::TakeFirst(std::vector<RankedRecord> records, Rung rung, const ReplayCheck& replay,
                       LookupAnswer& answer) {
  if (records.size() > kMaxTried) records.resize(kMaxTried);
  for (RankedRecord& ranked : records) {
    const absl::Status replays = replay(ranked.record);
    if (replays.ok()) {
      answer.rung = rung;
      answer.record = std::move(ranked);
      return true;
    }
    answer.stale.push_back({.id = ranked.record.id, .why = StatusMessage(replays)});
  }
  return false;
}

absl::StatusOr<const ModelVerdict*> Lookup::JudgedDefault(const RecordKey& key) {
  if (!model_) return nullptr;
  if (!verdicts_) {
    HONE_ASSIGN_OR_RETURN(verdicts_, database_.ModelVerdicts(*model_));
  }
  return KeepsDefault(*verdicts_, key);
}

absl::StatusOr<LookupAnswer> Lookup::Find(const RecordKey& key, std::string_view workload_text,
                                          const ReplayCheck& replay) {
  LookupAnswer answer;
  HONE_ASSIGN_OR_RETURN(const ModelVerdict* verdict, JudgedDefault(key));
  if (verdict != nullptr) {
    answer.judged = true;
    answer.why = WhyDefault(*verdict);
    return answer;
  }
  const RecordQuery query{.key = key, .builder_version = builder_version_};
  const auto climb = [&]() -> absl::Status {
    // Nearly always the best one replays: the others are fetched only if it does not.
    HONE_ASSIGN_OR_RETURN(std::vector<RankedRecord> exact, database_.TopRecords(query, 1));
    if (TakeFirst(std::move(exact), Rung::kExact, replay, answer)) return absl::OkStatus();
    if (!answer.stale.empty()) {
      HONE_ASSIGN_OR_RETURN(exact, database_.TopRecords(query, kMaxTried));
      std::erase_if(exact, [&](const RankedRecord& ranked) {
        return ranked.record.id == answer.stale[0].id;
      });
      if (TakeFirst(std::move(exact), Rung::kExact, replay, answer)) return absl::OkStatus();
    }
    HONE_ASSIGN_OR_RETURN(std::vector<RankedRecord> others, database_.SameIsaRecords(query));
    std::stable_sort(others.begin(), others.end(),
                     [&](const RankedRecord& a, const RankedRecord& b) {
                       return Strangeness(key, a.record.key) < Strangeness(key, b.record.key);
                     });
    if (TakeFirst(std::move(others), Rung::kThreads, replay, answer)) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const bool predicted, TakePredicted(key, replay, answer));
    if (predicted) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(answer.candidates, Nearest(key, workload_text));
    answer.rung = answer.candidates.empty() ? Rung::kDefault : Rung::kNearest;
    return absl::OkStatus();
  };
  HONE_RETURN_IF_ERROR(climb());
  answer.why = WhyOf(answer, key);
  return answer;
}

absl::StatusOr<bool> Lookup::TakePredicted(const RecordKey& key, const ReplayCheck& replay,
                                           LookupAnswer& answer) {
  if (predictions_ == Predictions::kIgnored) return false;
  const RecordQuery query{.key = PredictedKey(key), .builder_version = builder_version_};
  HONE_ASSIGN_OR_RETURN(std::vector<RankedRecord> records, database_.TopRecords(query, kMaxTried));
  answer.predicted = predictions_ == Predictions::kTold && !records.empty();
  return predictions_ == Predictions::kTaken &&
         TakeFirst(std::move(records), Rung::kPredicted, replay, answer);
}

absl::StatusOr<int> Lookup::ThreadsOf(const RankedRecord& answered) {
  const TuningRecord& record = answered.record;
  const int all = ThreadsOfTarget(record.key.target);
  if (record.median_ns > kLongNs) return all;
  RecordQuery query{.key = record.key, .builder_version = builder_version_};
  for (int threads = 1; threads < all; threads *= 2) {
    query.key.target = WithThreads(record.key.target, threads);
    HONE_ASSIGN_OR_RETURN(const std::vector<RankedRecord> found,
                          database_.TopRecords(query, kMaxTried));
    const auto as_fast = [&](const RankedRecord& fewer) {
      // Beside other programs fewer threads always look better, unless both ran in turns: a session
      // measures fewer than its own for nothing else.
      const bool comparable = !record.noisy || fewer.record.session == record.session;
      return comparable && fewer.record.trace == record.trace &&
             fewer.record.median_ns <= kMostSlower * record.median_ns;
    };
    if (std::ranges::any_of(found, as_fast)) return threads;
  }
  return all;
}

absl::StatusOr<const std::vector<Lookup::FormRow>*> Lookup::FormsOf(const std::string& isa,
                                                                    int policy) {
  const auto [place, added] = forms_.try_emplace({isa, policy});
  if (!added) return &place->second;
  absl::StatusOr<std::vector<WorkloadRow>> workloads = database_.MeasuredWorkloads(isa, policy);
  if (!workloads.ok()) {
    forms_.erase(place);
    return workloads.status();
  }
  for (WorkloadRow& workload : *workloads) {
    WorkloadForm form = FormOf(workload.text);
    place->second.push_back({.workload = std::move(workload), .form = std::move(form)});
  }
  return &place->second;
}

absl::StatusOr<std::vector<NearCandidate>> Lookup::Nearest(const RecordKey& key,
                                                           std::string_view workload_text) {
  HONE_ASSIGN_OR_RETURN(const std::vector<FormRow>* forms,
                        FormsOf(IsaOfTarget(key.target), key.measurement_policy));
  const WorkloadForm wanted = FormOf(workload_text);
  std::vector<std::pair<double, const FormRow*>> near;
  for (const FormRow& row : *forms) {
    if (row.workload.hash == key.workload) continue;
    const std::optional<double> distance = WorkloadDistance(wanted, row.form);
    if (distance) near.emplace_back(*distance, &row);
  }
  // Rows stand in the order of their hashes: ties are broken alike everywhere.
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<NearCandidate> candidates;
  for (const auto& [distance, row] : near) {
    if (candidates.size() == kMaxTried) break;
    RecordQuery query{.key = key, .builder_version = builder_version_};
    query.key.workload = row->workload.hash;
    HONE_ASSIGN_OR_RETURN(std::optional<RankedRecord> record, database_.BestRecord(query));
    if (!record) {
      HONE_ASSIGN_OR_RETURN(std::vector<RankedRecord> others, database_.SameIsaRecords(query));
      const auto least = std::min_element(
          others.begin(), others.end(), [&](const RankedRecord& a, const RankedRecord& b) {
            return Strangeness(key, a.record.key) < Strangeness(key, b.record.key);
          });
      if (least != others.end()) record = std::move(*least);
    }
    if (!record) continue;  // of a laxer accuracy class
    candidates.push_back(
        {.workload = row->workload, .record = *std::move(record), .distance = distance});
  }
  return candidates;
}

}  // namespace hone::db
