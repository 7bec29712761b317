#include "costmodel/flat_trees.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/status.h"

namespace hone::costmodel {

namespace {

constexpr size_t kGroup = FeatureColumns::kGroup;

/// Reads the parts of one line of a dump, in order.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : text_(text) {}
  bool Literal(std::string_view wanted) {
    if (!text_.starts_with(wanted)) return false;
    text_.remove_prefix(wanted.size());
    return true;
  }
  template <typename T>
  bool Number(T* out) {
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), *out);
    if (error != std::errc()) return false;
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return true;
  }

 private:
  std::string_view text_;
};

}  // namespace

FeatureColumns::FeatureColumns(const FeatureRows& rows, size_t begin, size_t count) : rows_(count) {
  if (count == 0) return;
  const size_t columns = rows.columns();
  values_.resize(groups() * columns * kGroup);
  least_.assign(rows[begin].begin(), rows[begin].end());
  most_ = least_;
  for (size_t g = 0; g < groups(); ++g) {
    float* group = values_.data() + g * columns * kGroup;
    for (size_t i = 0; i < kGroup; ++i) {
      const std::span<const float> row = rows[begin + std::min(g * kGroup + i, count - 1)];
      for (size_t k = 0; k < columns; ++k) group[k * kGroup + i] = row[k];
    }
  }
  bool missing = false;
  for (size_t i = 0; i < count; ++i) {
    const std::span<const float> row = rows[begin + i];
    for (size_t k = 0; k < columns; ++k) {
      least_[k] = std::min(least_[k], row[k]);
      most_[k] = std::max(most_[k], row[k]);
      missing |= std::isnan(row[k]);
    }
  }
  missing_ = missing;
}

absl::StatusOr<FlatTrees> FlatTrees::Parse(std::span<const char* const> dumps, size_t columns) {
  FlatTrees out;
  for (const char* dump : dumps) HONE_RETURN_IF_ERROR(out.ParseTree(dump, columns));
  return out;
}

// A line of XGBoost's text dump is `3:[f12<0.5] yes=7,no=8,missing=7` or `7:leaf=0.25`, indented by
// depth; numbers have nine digits and so give the same floats.
absl::Status FlatTrees::ParseTree(std::string_view dump, size_t columns) {
  std::vector<Node> tree;
  std::vector<int> seen;
  while (!dump.empty()) {
    const size_t end = std::min(dump.find('\n'), dump.size());
    std::string_view line = dump.substr(0, end);
    dump.remove_prefix(std::min(end + 1, dump.size()));
    while (line.starts_with('\t')) line.remove_prefix(1);
    if (line.empty()) continue;
    LineReader in(line);
    Node node;
    int id = -1, missing = -1;
    bool good = in.Number(&id) && id >= 0 && id < (1 << (kMostDepth + 1));
    if (good && in.Literal(":leaf=")) {
      good = in.Number(&node.value);
    } else if (good) {
      good = in.Literal(":[f") && in.Number(&node.feature) && in.Literal("<") &&
             in.Number(&node.value) && in.Literal("] yes=") && in.Number(&node.left) &&
             in.Literal(",no=") && in.Number(&node.right) && in.Literal(",missing=") &&
             in.Number(&missing) && node.feature >= 0 &&
             static_cast<size_t>(node.feature) < columns && node.left > id && node.right > id;
      node.missing_left = missing == node.left;
    }
    if (!good) {
      return absl::InvalidArgumentError(
          fmt::format("XGBoost: a line of a dumped tree is not understood: {}", line));
    }
    if (tree.size() <= static_cast<size_t>(id)) {
      tree.resize(static_cast<size_t>(id) + 1);
      seen.resize(tree.size(), 0);
    }
    tree[static_cast<size_t>(id)] = node;
    seen[static_cast<size_t>(id)] = 1;
  }
  const auto base = static_cast<int32_t>(nodes_.size());
  std::vector<int> depth(tree.size(), 0);
  for (size_t i = 0; i < tree.size(); ++i) {
    Node& node = tree[i];
    if (node.feature < 0) continue;
    for (int32_t* child : {&node.left, &node.right}) {
      const auto to = static_cast<size_t>(*child);
      if (to >= tree.size() || !seen[to] || depth[i] >= kMostDepth)
        return absl::InvalidArgumentError("XGBoost: a dumped tree lacks a child or is too deep");
      depth[to] = depth[i] + 1;
      *child += base;
    }
  }
  if (tree.empty() || !seen[0])
    return absl::InvalidArgumentError("XGBoost: a dumped tree has no root");
  roots_.push_back(base);
  nodes_.insert(nodes_.end(), tree.begin(), tree.end());
  return absl::OkStatus();
}

float FlatTrees::PredictRow(std::span<const float> row) const {
  float sum = 0;
  for (const int32_t root : roots_) {
    const Node* node = &nodes_[static_cast<size_t>(root)];
    while (node->feature >= 0) {
      const float x = row[static_cast<size_t>(node->feature)];
      const bool left = std::isnan(x) ? node->missing_left : x < node->value;
      node = &nodes_[static_cast<size_t>(left ? node->left : node->right)];
    }
    sum += node->value;
  }
  return sum;
}

int32_t FlatTrees::Skip(int32_t at, const FeatureColumns& columns) const {
  for (;;) {
    const Node& node = nodes_[static_cast<size_t>(at)];
    if (node.feature < 0) return at;
    if (columns.most(node.feature) < node.value) {
      at = node.left;
    } else if (columns.least(node.feature) >= node.value) {
      at = node.right;
    } else {
      return at;
    }
  }
}

void FlatTrees::Fold(int32_t at, const FeatureColumns& columns, std::vector<Step>* steps) const {
  const Node& node = nodes_[static_cast<size_t>(at)];
  const int32_t left = Skip(node.left, columns), right = Skip(node.right, columns);
  const Node &l = nodes_[static_cast<size_t>(left)], &r = nodes_[static_cast<size_t>(right)];
  if (l.feature >= 0) Fold(left, columns, steps);
  if (r.feature >= 0) Fold(right, columns, steps);
  const auto kind = l.feature < 0 ? (r.feature < 0 ? Step::Kind::kLeaves : Step::Kind::kLeftLeaf)
                                  : (r.feature < 0 ? Step::Kind::kRightLeaf : Step::Kind::kNoLeaf);
  steps->push_back({node.value, l.value, r.value, node.feature, kind});
}

// The loops have fixed lengths and no branches on data, so that the compiler makes vectors of them.
inline __attribute__((always_inline)) void FlatTrees::RunSteps(std::span<const Step> steps,
                                                               const float* group, float* sums) {
  alignas(64) float stack[kMostDepth + 2][kGroup];
  float* top = stack[0];  // the next free place
  for (const Step& s : steps) {
    const float* __restrict x = group + static_cast<size_t>(s.feature) * kGroup;
    const float t = s.threshold, l = s.left, r = s.right;
    switch (s.kind) {
      case Step::Kind::kLeaves: {
        float* __restrict out = top;
        for (size_t i = 0; i < kGroup; ++i) out[i] = x[i] < t ? l : r;
        top += kGroup;
        break;
      }
      case Step::Kind::kLeftLeaf: {
        float* __restrict out = top - kGroup;
        for (size_t i = 0; i < kGroup; ++i) out[i] = x[i] < t ? l : out[i];
        break;
      }
      case Step::Kind::kRightLeaf: {
        float* __restrict out = top - kGroup;
        for (size_t i = 0; i < kGroup; ++i) out[i] = x[i] < t ? out[i] : r;
        break;
      }
      case Step::Kind::kNoLeaf: {
        const float* __restrict other = top - kGroup;
        float* __restrict out = top - 2 * kGroup;
        for (size_t i = 0; i < kGroup; ++i) out[i] = x[i] < t ? out[i] : other[i];
        top -= kGroup;
        break;
      }
      case Step::Kind::kAddTop: {
        top -= kGroup;
        const float* __restrict in = top;
        for (size_t i = 0; i < kGroup; ++i) sums[i] += in[i];
        break;
      }
      case Step::Kind::kAddLeaf:
        for (size_t i = 0; i < kGroup; ++i) sums[i] += l;
        break;
    }
  }
}

#ifdef __x86_64__
__attribute__((target("avx512f,avx512vl,avx512dq,avx512bw"))) void FlatTrees::RunWide(
    std::span<const Step> steps, const float* group, float* sums) {
  RunSteps(steps, group, sums);
}
__attribute__((target("avx2"))) void FlatTrees::RunAvx2(std::span<const Step> steps,
                                                        const float* group, float* sums) {
  RunSteps(steps, group, sums);
}
#endif
void FlatTrees::RunAny(std::span<const Step> steps, const float* group, float* sums) {
  RunSteps(steps, group, sums);
}

void FlatTrees::Predict(const FeatureColumns& columns, std::span<float> sums) const {
  std::vector<Step> steps;
  for (const int32_t root : roots_) {
    const int32_t at = Skip(root, columns);
    const Node& node = nodes_[static_cast<size_t>(at)];
    if (node.feature < 0) {
      steps.push_back({0, node.value, 0, 0, Step::Kind::kAddLeaf});
      continue;
    }
    Fold(at, columns, &steps);
    steps.push_back({0, 0, 0, 0, Step::Kind::kAddTop});
  }
  auto run = &FlatTrees::RunAny;
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) {
    run = &FlatTrees::RunWide;
  } else if (__builtin_cpu_supports("avx2")) {
    run = &FlatTrees::RunAvx2;
  }
#endif
  alignas(64) float out[kGroup];
  for (size_t g = 0; g < columns.groups(); ++g) {
    std::fill(out, out + kGroup, 0.0F);
    run(steps, columns.Group(g), out);
    const size_t first = g * kGroup;
    std::copy(out, out + std::min(kGroup, columns.rows() - first),
              sums.begin() + static_cast<std::ptrdiff_t>(first));
  }
}

}  // namespace hone::costmodel
