#include "client/task_explanation.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <unordered_map>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "nlohmann/json.hpp"

#include "base/status.h"
#include "costmodel/features.h"
#include "schedule/space.h"
#include "schedule/trace.h"
#include "search/search_event.h"

namespace hone::client {
namespace {

using Row = std::span<const float>;  ///< of features

constexpr size_t kMostRecords = 10'000;
constexpr size_t kMostShares = 6;

/// Features of a kind of device, read by name.
class FeatureReader {
 public:
  explicit FeatureReader(const costmodel::FeatureSchema& columns) : columns_(columns) {}

  double At(Row features, size_t column) const {
    const auto value = static_cast<double>(features[column]);
    return columns_[column].logarithm ? std::exp2(value) - 1 : value;
  }
  /// 0 where the kind has no such column.
  double Of(Row features, std::string_view name) const {
    const auto at = std::ranges::find(columns_, name, &costmodel::Feature::name);
    return at == columns_.end() ? 0 : At(features, static_cast<size_t>(at - columns_.begin()));
  }
  AnalyticTerms TermsOf(Row f) const {
    return {Of(f, "compute_us"), Of(f, "feed_us"), Of(f, "memory_us"), Of(f, "transform_us"),
            Of(f, "analytic_us")};
  }
  std::string_view NameOf(size_t column) const { return columns_[column].name; }

 private:
  const costmodel::FeatureSchema& columns_;
};

FeatureReader ReaderFor(const schedule::Space& space) {
  return FeatureReader(costmodel::FeaturesOfKinds().Of(space.target()).columns());
}

/// The ids of the space's points that have these Traces.
std::unordered_map<std::string, uint64_t> Locate(const schedule::Space& space,
                                                 const std::vector<db::RankedRecord>& records) {
  std::unordered_map<std::string, uint64_t> ids;
  for (const db::RankedRecord& r : records) {
    if (ids.contains(r.record.trace)) continue;
    if (const auto id = space.Locate(r.record.trace)) ids.emplace(r.record.trace, *id);
  }
  return ids;
}

std::string Decisions(const schedule::Space& space, uint64_t id) {
  const schedule::Candidate candidate = space.At(id);
  const schedule::Sketch& sketch = space.sketches()[static_cast<size_t>(candidate.sketch)];
  std::string text;
  for (size_t t = 0; t < sketch.tables.size(); ++t) {
    const schedule::DecisionTable& table = sketch.tables[t];
    const auto& row = table.rows[static_cast<size_t>(candidate.rows[t])];
    text += fmt::format("{}{}", text.empty() ? "" : ", ", table.name);
    for (size_t k = 0; k < row.size() && k < table.columns.size(); ++k) {
      text += fmt::format(" {}={}", table.columns[k], row[k]);
    }
  }
  return text;
}

/// Places (1 is best) of values where less is better; equal ones get their mean place.
std::vector<double> Places(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> places(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) {
      places[order[i]] = 0.5 * static_cast<double>(begin + end + 1);
    }
    begin = end;
  }
  return places;
}

/// Spearman's rank correlation; nothing below four values or where one side is constant.
std::optional<double> RankCorrelation(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() < 4) return std::nullopt;
  const std::vector<double> x = Places(a), y = Places(b);
  const double mean = 0.5 * static_cast<double>(a.size() + 1);
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  if (xx == 0 || yy == 0) return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

/// The measured points of the space, with what the models say of them.
struct Measured {
  std::vector<uint64_t> ids;
  std::vector<double> latency_ns, analytic_us, minus_score;
  costmodel::FeatureRows features;
  std::vector<costmodel::Prediction> predictions;  ///< empty without trees
  std::unordered_map<uint64_t, size_t> row;        ///< of an id
};

absl::StatusOr<Measured> MeasuredPoints(const std::vector<db::RankedRecord>& records,
                                        const std::unordered_map<std::string, uint64_t>& ids,
                                        const costmodel::FeatureExtractor& extractor,
                                        const FeatureReader& reader, const LoggedModel* model) {
  Measured measured;
  for (const db::RankedRecord& r : records) {
    const auto it = ids.find(r.record.trace);
    if (it == ids.end()) continue;
    measured.row.emplace(it->second, measured.ids.size());
    measured.ids.push_back(it->second);
    measured.latency_ns.push_back(r.record.median_ns);
    measured.features.push_back(extractor.Extract(it->second));
    const Row added = measured.features[measured.features.size() - 1];
    measured.analytic_us.push_back(reader.Of(added, "analytic_us"));
  }
  if (model != nullptr && !measured.features.empty()) {
    HONE_ASSIGN_OR_RETURN(measured.predictions, model->trees->Predict(measured.features));
    for (const costmodel::Prediction& p : measured.predictions) {
      measured.minus_score.push_back(-static_cast<double>(p.mean));
    }
  }
  return measured;
}

/// The features that speak most for (or against) a row, beside the default's.
std::vector<FeatureShare> SharesOf(const FeatureReader& reader, Row features,
                                   const costmodel::XgboostModel::Explanation& explained,
                                   Row default_features,
                                   const costmodel::XgboostModel::Explanation& default_explained) {
  std::vector<FeatureShare> shares;
  for (size_t k = 0; k < features.size(); ++k) {
    const auto difference = static_cast<double>(explained.contribution[k]) -
                            static_cast<double>(default_explained.contribution[k]);
    shares.push_back({std::string(reader.NameOf(k)), reader.At(features, k),
                      reader.At(default_features, k), difference});
  }
  std::stable_sort(shares.begin(), shares.end(), [](const FeatureShare& a, const FeatureShare& b) {
    return std::abs(a.contribution) > std::abs(b.contribution);
  });
  std::erase_if(shares, [](const FeatureShare& s) { return std::abs(s.contribution) < 1e-4; });
  if (shares.size() > kMostShares) shares.resize(kMostShares);
  return shares;
}

absl::StatusOr<PointView> ViewPoint(const schedule::Space& space,
                                    const costmodel::FeatureExtractor& extractor, uint64_t id,
                                    const Measured& measured, const LoggedModel* model) {
  PointView view;
  view.sketch = space.sketches()[static_cast<size_t>(space.At(id).sketch)].name;
  view.decisions = Decisions(space, id);
  const size_t row = measured.row.at(id);
  const FeatureReader reader = ReaderFor(space);
  view.analytic = reader.TermsOf(measured.features[row]);
  const auto place = [row](const std::vector<double>& values) {
    return 1 + static_cast<int>(std::count_if(values.begin(), values.end(),
                                              [&](double v) { return v < values[row]; }));
  };
  view.analytic_place = place(measured.analytic_us);
  if (model == nullptr) return view;
  view.score = static_cast<double>(measured.predictions[row].mean);
  view.spread = static_cast<double>(measured.predictions[row].spread);
  view.place = place(measured.minus_score);
  costmodel::FeatureRows rows;
  rows.push_back(measured.features[row]);
  rows.push_back(extractor.Extract(space.DefaultId()));
  HONE_ASSIGN_OR_RETURN(const auto explained, costmodel::XgboostModel::Explain(model->bytes, rows));
  view.why = SharesOf(reader, rows[0], explained[0], rows[1], explained[1]);
  return view;
}

/// Outcomes and proposers of a task's attempts; who proposed each Trace first.
absl::StatusOr<std::unordered_map<std::string, std::string>> CountAttempts(
    db::Database& log, const db::RecordKey& key, const std::vector<db::RankedRecord>& records,
    TaskExplanation& out) {
  std::unordered_map<std::string, double> latency;
  for (const db::RankedRecord& r : records) latency.emplace(r.record.trace, r.record.median_ns);
  std::unordered_map<std::string, std::string> proposers;
  double best = 0;
  HONE_RETURN_IF_ERROR(
      log.ScanAttempts({.workload = key.workload}, [&](const db::Attempt& attempt) {
        if (!(attempt.key == key)) return absl::OkStatus();
        ++out.outcomes[std::string(measure::ToString(attempt.outcome))];
        auto& [candidates, wins] = out.proposers[attempt.proposer];
        ++candidates;
        proposers.emplace(attempt.trace, attempt.proposer);
        const auto it = latency.find(attempt.trace);
        if (attempt.outcome != measure::Outcome::kOk || it == latency.end()) {
          return absl::OkStatus();
        }
        if (best > 0 && it->second < best) ++wins;
        if (best == 0 || it->second < best) best = it->second;
        return absl::OkStatus();
      }));
  return proposers;
}

/// Where a session's request has a Workload among its tasks; -1: nowhere, or it does not tell.
int PlaceOf(const Hash128& workload, const db::Session& session) {
  const auto request = nlohmann::json::parse(session.request, nullptr, false);
  if (!request.is_object() || !request.contains("tasks") || !request["tasks"].is_array()) return -1;
  int place = 0;
  for (const nlohmann::json& task : request["tasks"]) {
    if (task.is_object() && task.value("workload", "") == workload.ToHex()) return place;
    ++place;
  }
  return -1;
}

/// The default's time in the comparison in turns that gave this record's, ns: times of different
/// comparisons have no ratio. 0 where there was none.
absl::StatusOr<double> ComparedDefaultNs(db::Database& log, const db::TuningRecord& record) {
  if (!db::WonComparison(record.rigor)) return 0.0;
  constexpr double kRounded = 0.051;  // an event's times have one decimal
  HONE_ASSIGN_OR_RETURN(const std::vector<db::StoredSession> sessions, log.Sessions());
  const auto session = std::ranges::find_if(
      sessions, [&](const db::StoredSession& s) { return s.session.id == record.session; });
  if (session == sessions.end()) return 0.0;
  const int place = PlaceOf(record.key.workload, session->session);
  double found = 0;
  HONE_RETURN_IF_ERROR(log.ScanEvents({.session = record.session}, [&](const db::Event& event) {
    const auto verdict = search::EventAs<search::VerdictEvent>(event);
    if (verdict && verdict->task == place &&
        std::abs(verdict->best_ns - record.median_ns) < kRounded) {
      found = verdict->default_ns;
    }
    return absl::OkStatus();
  }));
  return found;
}

}  // namespace

absl::StatusOr<std::optional<LoggedModel>> LastModel(db::Database& log, const std::string& target) {
  std::string digest;
  HONE_RETURN_IF_ERROR(log.ScanEvents({}, [&](const db::Event& event) {
    if (auto model = search::EventAs<search::ModelEvent>(event)) digest = std::move(model->digest);
    return absl::OkStatus();
  }));
  if (digest.empty()) return std::nullopt;
  HONE_ASSIGN_OR_RETURN(std::optional<std::string> bytes, log.FindBlob(digest));
  if (!bytes) return std::nullopt;
  auto trees = costmodel::XgboostModel::Load(*bytes, target);
  if (!trees.ok()) return std::nullopt;  // of another Hone
  return LoggedModel{*std::move(bytes), *std::move(trees)};
}

absl::StatusOr<TaskExplanation> ExplainTask(db::Database& log, const db::RecordKey& key,
                                            const ir::Workload& workload, const ir::Target& target,
                                            const LoggedModel* model,
                                            const std::string& builder_version, int top) {
  TaskExplanation out;
  const schedule::Space space(workload, target, key.accuracy);
  out.space_hash = space.hash();
  out.product = space.product();
  out.admitted = space.admitted();
  for (const schedule::Sketch& sketch : space.sketches()) {
    SketchView& view = out.sketches.emplace_back(SketchView{sketch.name, sketch.Product(), {}});
    for (const schedule::DecisionTable& table : sketch.tables) {
      view.tables.push_back(fmt::format("{}({}): {} rows", table.name,
                                        fmt::join(table.columns, ", "), table.rows.size()));
    }
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<db::RankedRecord> records,
                        log.TopRecords({key, builder_version}, kMostRecords));
  HONE_ASSIGN_OR_RETURN(const auto proposers, CountAttempts(log, key, records, out));
  const auto ids = Locate(space, records);
  const costmodel::FeatureExtractor extractor(space);
  HONE_ASSIGN_OR_RETURN(const Measured measured,
                        MeasuredPoints(records, ids, extractor, ReaderFor(space), model));
  out.located = static_cast<int>(measured.ids.size());
  out.analytic_rank_correlation = RankCorrelation(measured.analytic_us, measured.latency_ns);
  if (model != nullptr) {
    out.rank_correlation = RankCorrelation(measured.minus_score, measured.latency_ns);
  }
  std::unordered_map<std::string, std::string> written_from;
  HONE_RETURN_IF_ERROR(log.ScanValues({.workload = key.workload}, [&](const db::TraceValues& v) {
    if (v.target == key.target) written_from.emplace(v.trace.ToHex(), v.text);
    return absl::OkStatus();
  }));
  for (const db::RankedRecord& record : records) {
    const auto id = ids.find(record.record.trace);
    const bool is_default = id != ids.end() && id->second == space.DefaultId();
    const bool shown = static_cast<int>(out.best.size()) < top;
    if (!shown && !is_default) continue;
    ExplainedTrace each = {.record = record};
    const auto values = written_from.find(db::TraceHash(record.record.trace).ToHex());
    if (values != written_from.end()) each.written_from = values->second;
    const auto proposer = proposers.find(record.record.trace);
    if (proposer != proposers.end()) each.proposer = proposer->second;
    if (id != ids.end()) {
      HONE_ASSIGN_OR_RETURN(each.point, ViewPoint(space, extractor, id->second, measured, model));
    }
    if (is_default) out.default_trace = each;
    if (shown) {
      HONE_ASSIGN_OR_RETURN(each.compared_default_ns, ComparedDefaultNs(log, record.record));
    }
    if (shown) out.best.push_back(std::move(each));
  }
  return out;
}

}  // namespace hone::client
