#include "costmodel/xgboost_model.h"

#include <fmt/format.h>
#include <omp.h>
#include <xgboost/c_api.h>

#include <algorithm>
#include <cmath>

#include "base/core/random.h"
#include "base/core/words.h"
#include "base/status.h"
#include "costmodel/flat_trees.h"
#include "ir/kind_facts.h"
#include "ir/target.h"

namespace hone::costmodel {

namespace {

/// XGBoost's own message without its stack trace.
absl::Status LastError(const char* what) {
  std::string message = XGBGetLastError();
  message = message.substr(0, message.find('\n'));
  return absl::InternalError(fmt::format("XGBoost: {}: {}", what, message));
}

#define HONE_XGB(call)                        \
  do {                                        \
    if ((call) != 0) return LastError(#call); \
  } while (false)

/// While it lives, what this thread asks of XGBoost runs on this thread. Its "nthread" does not
/// reach all of its loops, and threads of OpenMP's spin where they wait: half of what a farm's
/// searches took was that.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  OneThread(const OneThread&) = delete;
  ~OneThread() { omp_set_num_threads(before_); }

 private:
  const int before_;
};

struct Matrix {
  DMatrixHandle handle = nullptr;
  ~Matrix() {
    if (handle) XGDMatrixFree(handle);
  }
};
struct Booster {
  BoosterHandle handle = nullptr;
  Booster() = default;
  Booster(Booster&& o) noexcept : handle(o.handle) { o.handle = nullptr; }
  Booster(const Booster&) = delete;
  ~Booster() {
    if (handle) XGBoosterFree(handle);
  }
};

absl::Status SetParameters(BoosterHandle b, uint64_t seed) {
  const std::pair<const char*, std::string> kParameters[] = {
      {"tree_method", "hist"},
      {"max_depth", std::to_string(XgboostModel::kDepth)},
      {"eta", "0.2"},
      {"max_bin", "64"},
      {"subsample", "0.8"},
      {"colsample_bytree", "0.8"},
      {"nthread", "1"},
      {"base_score", "0"},
      {"verbosity", "0"},
      {"min_child_weight", "0.01"},
      {"seed", std::to_string(seed & 0x7fffffff)}};
  for (const auto& [key, value] : kParameters) HONE_XGB(XGBoosterSetParam(b, key, value.c_str()));
  return absl::OkStatus();
}

std::string ArrayInterface(const FeatureRows& rows) {
  return fmt::format(R"({{"data":[{},true],"shape":[{},{}],"typestr":"<f4","version":3}})",
                     reinterpret_cast<uintptr_t>(rows.data()), rows.size(), rows.columns());
}

/// What a row scores before any tree: the analytic model's opinion, a point for each doubling of
/// the time. Trees learn what is left, so that few rows do no harm.
float Prior(std::span<const float> row) {
  const float over_best = row.back();  // FeatureSchema
  return std::isnan(over_best) ? 0 : -over_best;
}

/// LambdaNDCG for one task: adds gradients and hessians of every pair with different labels. Pairs
/// of a long list are thinned to those with a member among the best by score, where NDCG changes.
void AddLambdas(std::span<const float> score, std::span<const float> label,
                std::span<float> gradient, std::span<float> hessian) {
  const size_t n = score.size();
  std::vector<size_t> order(n), rank(n);
  for (size_t i = 0; i < n; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return score[a] > score[b]; });
  for (size_t r = 0; r < n; ++r) rank[order[r]] = r;
  std::vector<float> ideal(label.begin(), label.end());
  std::sort(ideal.rbegin(), ideal.rend());
  double top = 1e-9;
  for (size_t r = 0; r < n; ++r) top += ideal[r] / std::log2(2.0 + static_cast<double>(r));
  constexpr size_t kTop = 32;
  for (size_t r = 0; r < std::min(n, kTop); ++r) {
    for (size_t q = r + 1; q < n; ++q) {
      size_t a = order[r], b = order[q];
      if (label[a] == label[b]) continue;
      if (label[a] < label[b]) std::swap(a, b);
      const double discount = std::abs(1 / std::log2(2.0 + static_cast<double>(rank[a])) -
                                       1 / std::log2(2.0 + static_cast<double>(rank[b])));
      const double delta = (label[a] - label[b]) * discount / top;
      const double p =
          1 / (1 + std::exp(static_cast<double>(score[a]) - static_cast<double>(score[b])));
      const auto g = static_cast<float>(p * delta),
                 h = static_cast<float>(std::max(p * (1 - p) * delta, 1e-7));
      gradient[a] -= g;
      gradient[b] += g;
      hessian[a] += h;
      hessian[b] += h;
    }
  }
}

/// `ends`: where each task's rows end.
absl::StatusOr<Booster> TrainOne(const FeatureRows& rows, std::span<const float> labels,
                                 std::span<const size_t> ends, uint64_t seed) {
  Matrix matrix;
  HONE_XGB(XGDMatrixCreateFromDense(ArrayInterface(rows).c_str(), R"({"missing":NaN,"nthread":1})",
                                    &matrix.handle));
  Booster booster;
  HONE_XGB(XGBoosterCreate(&matrix.handle, 1, &booster.handle));
  HONE_RETURN_IF_ERROR(SetParameters(booster.handle, seed));
  std::vector<float> gradient(rows.size()), hessian(rows.size());
  for (int round = 0; round < XgboostModel::kRounds; ++round) {
    std::vector<float> score(rows.size(), 0);
    if (round > 0) {
      bst_ulong n = 0;
      const float* result = nullptr;
      HONE_XGB(XGBoosterPredict(booster.handle, matrix.handle, 1, 0, 1, &n, &result));
      std::copy(result, result + n, score.begin());
    }
    for (size_t i = 0; i < score.size(); ++i) score[i] += Prior(rows[i]);
    std::fill(gradient.begin(), gradient.end(), 0.0F);
    std::fill(hessian.begin(), hessian.end(), 1e-6F);
    size_t begin = 0;
    for (const size_t end : ends) {
      const size_t n = end - begin;
      AddLambdas(std::span(score).subspan(begin, n), labels.subspan(begin, n),
                 std::span(gradient).subspan(begin, n), std::span(hessian).subspan(begin, n));
      begin = end;
    }
    HONE_XGB(XGBoosterBoostOneIter(booster.handle, matrix.handle, gradient.data(), hessian.data(),
                                   rows.size()));
  }
  return booster;
}

constexpr char kMagic[] = "hone-trees";
constexpr char kPredictConfig[] =
    R"({"type":1,"training":false,"iteration_begin":0,"iteration_end":0,"strict_shape":false,"cache_id":0,"missing":NaN})";
/// Rows turned at a time: what they and the trees take stays in the second-level cache.
constexpr size_t kTurned = 1024;
/// Fewer rows than this are walked one by one: folding the trees would cost more.
constexpr size_t kFewRows = 48;

/// Means and spreads from the bags' sums of a row.
class BagSums {
 public:
  explicit BagSums(size_t rows) : sum_(rows, 0), square_(rows, 0) {}
  void Add(size_t row, float value) {
    sum_[row] += value;
    square_[row] += value * value;
  }
  std::vector<Prediction> Predictions(const FeatureRows& rows, size_t bags) const {
    const auto n = static_cast<float>(bags);
    std::vector<Prediction> out(sum_.size());
    for (size_t i = 0; i < out.size(); ++i) {
      const float mean = sum_[i] / n;
      out[i].spread = std::sqrt(std::max(0.0F, square_[i] / n - mean * mean));
      out[i].mean = mean + Prior(rows[i]);
    }
    return out;
  }

 private:
  std::vector<float> sum_, square_;
};

absl::StatusOr<FlatTrees> Flatten(const Booster& booster, size_t columns) {
  bst_ulong n = 0;
  const char** dumps = nullptr;
  HONE_XGB(XGBoosterDumpModelEx(booster.handle, "", 0, "text", &n, &dumps));
  return FlatTrees::Parse(std::span(dumps, n), columns);
}

/// A few rows all over the columns' ranges, one of them with missing values: a library that dumps
/// or walks its trees in another way than ours is noticed here.
absl::Status CheckFlat(const Booster& booster, const FlatTrees& flat, size_t columns) {
  FeatureRows rows(columns);
  Random random(1);
  for (int i = 0; i < 8; ++i) {
    for (float& x : rows.Add()) x = static_cast<float>(random.Uniform() * std::pow(4.0, i));
  }
  for (size_t k = 0; k < columns; k += 2) rows[1][k] = std::nanf("");
  const bst_ulong* shape = nullptr;
  bst_ulong dimensions = 0;
  const float* result = nullptr;
  HONE_XGB(XGBoosterPredictFromDense(booster.handle, ArrayInterface(rows).c_str(), kPredictConfig,
                                     nullptr, &shape, &dimensions, &result));
  for (size_t i = 0; i < rows.size(); ++i) {
    if (std::abs(flat.PredictRow(rows[i]) - result[i]) > 1e-5F)
      return absl::InternalError("XGBoost: its trees are read in another way than it walks them");
  }
  return absl::OkStatus();
}

/// How many columns the features of the target's kind have; empty: the CPU's.
size_t ColumnsOf(std::string_view target) {
  const std::string_view kind =
      target.empty() ? ir::TargetKinds().front()->name() : ir::KindNameOf(target);
  const FeaturesOfKind* features = FeaturesOfKinds().Find(kind);
  return features == nullptr ? 0 : features->columns().size();
}

/// Whose columns a model reads: "3", the version, then the kind where it is not the first one.
std::string SchemaOf(std::string_view target) {
  const std::string_view kind = ir::KindNameOf(target);
  const bool first = target.empty() || kind == ir::TargetKinds().front()->name();
  return fmt::format("{} {}{}{}", ir::VersionsOf(target).feature_schema, XgboostModel::kBags,
                     first ? "" : " ", first ? "" : kind);
}

/// The boosters of a model's bytes, whose first line Train wrote.
absl::StatusOr<std::vector<Booster>> BoostersOf(const std::string& bytes) {
  auto line = [&](size_t* at) {
    size_t end = bytes.find('\n', *at);
    std::string text = end == std::string::npos ? "" : bytes.substr(*at, end - *at);
    *at = end == std::string::npos ? bytes.size() : end + 1;
    return text;
  };
  size_t at = 0;
  const std::string head = line(&at);
  Words words(head);
  const bool is_ours = words.Word() == kMagic;
  words.Number<int>();  // the schema, which Load compares
  const int bags = words.Number<int>();
  if (words.bad() || !is_ours || bags < 1 || bags > 64) {
    return absl::InvalidArgumentError("not a cost model of Hone");
  }
  std::vector<Booster> boosters;
  for (int i = 0; i < bags; ++i) {
    const std::string size = line(&at);
    Words size_words(size);
    const auto n = size_words.Number<size_t>();
    if (size_words.bad() || n > bytes.size() - at)
      return absl::InvalidArgumentError("the cost model is cut short");
    Booster& b = boosters.emplace_back();
    HONE_XGB(XGBoosterCreate(nullptr, 0, &b.handle));
    HONE_XGB(XGBoosterLoadModelFromBuffer(b.handle, bytes.data() + at, n));
    HONE_XGB(XGBoosterSetParam(b.handle, "nthread", "1"));
    at += n;
  }
  return boosters;
}

}  // namespace

absl::StatusOr<std::string> XgboostModel::Train(const std::vector<TrainingTask>& tasks,
                                                uint64_t seed, std::string_view target) {
  const OneThread here;
  Random random(seed);
  size_t longest = 0;
  for (const auto& t : tasks) longest = std::max(longest, t.labels.size());
  if (longest < 2)
    return absl::InvalidArgumentError("a model needs a task with at least two measured candidates");
  std::string bytes = fmt::format("{} {}\n", kMagic, SchemaOf(target));
  for (int bag = 0; bag < kBags; ++bag) {
    // Each bag sees its own draw (with replacement) of every task's rows.
    FeatureRows rows;
    std::vector<float> labels;
    std::vector<size_t> ends;
    for (const auto& t : tasks) {
      for (size_t i = 0; i < t.labels.size(); ++i) {
        const auto pick = static_cast<size_t>(random.Below(t.labels.size()));
        rows.push_back(t.features[pick]);
        labels.push_back(t.labels[pick]);
      }
      ends.push_back(rows.size());
    }
    HONE_ASSIGN_OR_RETURN(const Booster booster,
                          TrainOne(rows, labels, ends, seed + static_cast<uint64_t>(bag)));
    bst_ulong n = 0;
    const char* data = nullptr;
    HONE_XGB(XGBoosterSaveModelToBuffer(booster.handle, R"({"format":"ubj"})", &n, &data));
    bytes += fmt::format("{}\n", n);
    bytes.append(data, n);
  }
  return bytes;
}

absl::StatusOr<std::unique_ptr<XgboostModel>> XgboostModel::Load(const std::string& bytes,
                                                                 std::string_view target) {
  const OneThread here;
  const std::string head = fmt::format("{} {}\n", kMagic, SchemaOf(target));
  if (bytes.starts_with(kMagic) && !bytes.starts_with(head)) {
    return absl::InvalidArgumentError(fmt::format(
        "the cost model has feature schema '{}', this Hone has '{}': train it again",
        bytes.substr(0, std::min<size_t>(bytes.find('\n'), 60)), head.substr(0, head.size() - 1)));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<Booster> boosters, BoostersOf(bytes));
  const size_t columns = ColumnsOf(target);
  std::vector<FlatTrees> bags;
  for (const Booster& booster : boosters) {
    HONE_ASSIGN_OR_RETURN(FlatTrees flat, Flatten(booster, columns));
    HONE_RETURN_IF_ERROR(CheckFlat(booster, flat, columns));
    bags.push_back(std::move(flat));
  }
  return std::unique_ptr<XgboostModel>(new XgboostModel(std::move(bags)));
}

absl::StatusOr<std::vector<Prediction>> XgboostModel::Predict(const FeatureRows& rows) const {
  BagSums sums(rows.size());
  std::vector<float> part(kTurned);
  for (size_t begin = 0; begin < rows.size(); begin += kTurned) {
    const size_t some = std::min(kTurned, rows.size() - begin);
    if (some >= kFewRows) {
      const FeatureColumns columns(rows, begin, some);
      if (!columns.missing()) {
        for (const FlatTrees& trees : bags_) {
          trees.Predict(columns, std::span(part).first(some));
          for (size_t i = 0; i < some; ++i) sums.Add(begin + i, part[i]);
        }
        continue;
      }
    }
    for (const FlatTrees& trees : bags_) {
      for (size_t i = 0; i < some; ++i) sums.Add(begin + i, trees.PredictRow(rows[begin + i]));
    }
  }
  return sums.Predictions(rows, bags_.size());
}

absl::StatusOr<std::vector<Prediction>> XgboostModel::PredictByLibrary(const std::string& bytes,
                                                                       const FeatureRows& rows) {
  const OneThread here;
  HONE_ASSIGN_OR_RETURN(const std::vector<Booster> boosters, BoostersOf(bytes));
  BagSums sums(rows.size());
  if (rows.empty()) return sums.Predictions(rows, 1);
  const std::string array = ArrayInterface(rows);
  for (const auto& b : boosters) {
    const bst_ulong* shape = nullptr;
    bst_ulong dimensions = 0;
    const float* result = nullptr;
    HONE_XGB(XGBoosterPredictFromDense(b.handle, array.c_str(), kPredictConfig, nullptr, &shape,
                                       &dimensions, &result));
    for (size_t i = 0; i < rows.size(); ++i) sums.Add(i, result[i]);
  }
  return sums.Predictions(rows, boosters.size());
}

absl::StatusOr<std::vector<XgboostModel::Explanation>> XgboostModel::Explain(
    const std::string& bytes, const FeatureRows& rows) {
  const OneThread here;
  HONE_ASSIGN_OR_RETURN(const std::vector<Booster> boosters, BoostersOf(bytes));
  std::vector<Explanation> out(rows.size(), {.contribution = FeatureVector(rows.columns(), 0)});
  if (rows.empty()) return out;
  Matrix matrix;
  HONE_XGB(XGDMatrixCreateFromDense(ArrayInterface(rows).c_str(), R"({"missing":NaN,"nthread":1})",
                                    &matrix.handle));
  const char* config =
      R"({"type":2,"training":false,"iteration_begin":0,"iteration_end":0,"strict_shape":true})";
  const auto share = 1 / static_cast<float>(boosters.size());
  for (const auto& b : boosters) {
    const bst_ulong* shape = nullptr;
    bst_ulong dimensions = 0;
    const float* result = nullptr;
    HONE_XGB(
        XGBoosterPredictFromDMatrix(b.handle, matrix.handle, config, &shape, &dimensions, &result));
    // [rows, 1, features and the base]
    if (dimensions != 3 || shape[0] != rows.size() || shape[1] != 1 ||
        shape[2] != rows.columns() + 1) {
      return absl::InternalError("XGBoost: contributions of another shape");
    }
    for (Explanation& each : out) {
      for (float& sum : each.contribution) sum += *result++ * share;
      each.base += *result++ * share;
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) out[i].contribution.back() += Prior(rows[i]);
  return out;
}

}  // namespace hone::costmodel
