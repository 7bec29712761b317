#include "graph/onnx_prune/pruned_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "fmt/format.h"

namespace hone::graph::onnx_prune {
namespace {

using Kind = PruneStructure::Kind;

std::vector<float> Copied(const Layer& layer) {
  std::vector<float> values(static_cast<size_t>(layer.weights_data->type.NumElements()));
  std::memcpy(values.data(), layer.weights_data->bytes.data(), values.size() * sizeof(float));
  return values;
}

/// Makes weights of one layer zero.
class Pruner {
 public:
  Pruner(const Layer& layer, const std::vector<double>& norms)
      : layer_(layer), norms_(norms), weights_(Copied(layer)) {}

  /// Blocks of 1 x 1 are single weights.
  void ZeroBlocks(const PruneStructure& block, double sparsity) {
    const int64_t down = layer_.terms / block.terms, across = layer_.columns / block.columns;
    // With norms the columns of a strip of blocks share the zeros evenly: sums of different columns
    // are of different sizes, which says nothing of what the reader makes of them.
    const int64_t strips = norms_.empty() ? 1 : across, wide = across / strips;
    for (int64_t strip = 0; strip < strips; ++strip) {
      std::vector<float> saliency;
      saliency.reserve(static_cast<size_t>(down * wide));
      for (int64_t b = 0; b < down * wide; ++b)
        saliency.push_back(BlockSaliency(block, b / wide, strip * wide + b % wide));
      ZeroLeast(saliency, NumZeros(sparsity, down * wide), [&](int64_t b) {
        ForBlock(block, b / wide, strip * wide + b % wide,
                 [&](int64_t n, int64_t t) { weights_[layer_.ElementOf(n, t)] = 0; });
      });
    }
  }

  /// Terms of one place of the window in neighbouring channels are a group.
  void ZeroOfGroups(int64_t kept, int64_t group) {
    const int64_t window = layer_.window, channels = layer_.terms / window;
    std::vector<float> saliency(static_cast<size_t>(group));
    for (int64_t n = 0; n < layer_.columns; ++n) {
      for (int64_t first = 0; first < channels; first += group) {
        for (int64_t place = 0; place < window; ++place) {
          const auto term = [&](int64_t i) { return (first + i) * window + place; };
          for (int64_t i = 0; i < group; ++i)
            saliency[static_cast<size_t>(i)] = static_cast<float>(Saliency(n, term(i)));
          ZeroLeast(saliency, group - kept,
                    [&](int64_t i) { weights_[layer_.ElementOf(n, term(i))] = 0; });
        }
      }
    }
  }

  std::vector<float> Take() { return std::move(weights_); }

 private:
  double Saliency(int64_t n, int64_t t) const {
    const double size = std::fabs(static_cast<double>(weights_[layer_.ElementOf(n, t)]));
    return norms_.empty() ? size : size * norms_[layer_.ChannelOf(n, t)];
  }

  template <typename F>
  void ForBlock(const PruneStructure& block, int64_t down, int64_t across, F&& visit) const {
    for (int64_t n = across * block.columns; n < (across + 1) * block.columns; ++n)
      for (int64_t t = down * block.terms; t < (down + 1) * block.terms; ++t) visit(n, t);
  }

  float BlockSaliency(const PruneStructure& block, int64_t down, int64_t across) const {
    double sum = 0;
    ForBlock(block, down, across, [&](int64_t n, int64_t t) {
      const double saliency = Saliency(n, t);
      sum += saliency * saliency;
    });
    return static_cast<float>(std::sqrt(sum));
  }

  /// The first of equal ones.
  template <typename F>
  static void ZeroLeast(const std::vector<float>& saliency, int64_t zeros, F&& zero) {
    if (zeros <= 0) return;
    std::vector<float> sorted = saliency;
    const auto last = sorted.begin() + static_cast<std::ptrdiff_t>(zeros - 1);
    std::nth_element(sorted.begin(), last, sorted.end());
    const float limit = *last;
    int64_t at_limit =
        zeros - std::count_if(sorted.begin(), last + 1, [&](float value) { return value < limit; });
    for (size_t i = 0; i < saliency.size(); ++i) {
      if (saliency[i] > limit || (saliency[i] == limit && at_limit-- <= 0)) continue;
      zero(static_cast<int64_t>(i));
    }
  }

  const Layer& layer_;
  const std::vector<double>& norms_;
  std::vector<float> weights_;
};

/// A layer's weights by column and term.
class Weights {
 public:
  explicit Weights(const Layer& layer)
      : layer_(layer), values_(reinterpret_cast<const float*>(layer.weights_data->bytes.data())) {}
  double At(int64_t n, int64_t t) const {
    return static_cast<double>(values_[layer_.ElementOf(n, t)]);
  }

 private:
  const Layer& layer_;
  const float* values_;
};

absl::Status Invalid(std::string message) { return absl::InvalidArgumentError(std::move(message)); }

}  // namespace

int64_t NumZeros(double sparsity, int64_t units) {
  return std::llround(sparsity * static_cast<double>(units));
}

absl::Status CheckFits(const Layer& layer, const PruneStructure& structure, double sparsity) {
  if (structure.kind == Kind::kOfGroup) {
    const int64_t channels = layer.terms / layer.window;
    if (channels % structure.group == 0) return absl::OkStatus();
    return Invalid(
        fmt::format("--structure {}:{}: {} {} has sums over {} input channels, which groups of {} "
                    "do not divide; leave the layer as it is with --keep {}",
                    structure.kept, structure.group, layer.op, layer.name, channels,
                    structure.group, layer.name));
  }
  if (layer.terms % structure.terms != 0 || layer.columns % structure.columns != 0) {
    return Invalid(fmt::format(
        "--structure block:{}x{}: {} {} has sums of {} terms in {} columns, which such blocks do "
        "not divide; choose others, or leave the layer as it is with --keep {}",
        structure.terms, structure.columns, layer.op, layer.name, layer.terms, layer.columns,
        layer.name));
  }
  // The fewest that are compared with each other: those of one strip of columns.
  const int64_t units = layer.terms / structure.terms;
  if (NumZeros(sparsity, units) < units) return absl::OkStatus();
  return Invalid(
      fmt::format("--sparsity {} leaves no weight of {} {}: each column has {} {}; ask for less, "
                  "or leave the layer as it is with --keep {}",
                  sparsity, layer.op, layer.name, units,
                  structure.terms * structure.columns == 1 ? "weights" : "blocks", layer.name));
}

std::vector<float> PrunedWeights(const Layer& layer, const PruneStructure& structure,
                                 double sparsity, const std::vector<double>& channel_norms) {
  Pruner pruner(layer, channel_norms);
  if (structure.kind == Kind::kOfGroup)
    pruner.ZeroOfGroups(structure.kept, structure.group);
  else
    pruner.ZeroBlocks(structure, sparsity);
  return pruner.Take();
}

std::vector<double> ChannelSaliencies(const onnx_quantise::SourceModel& source,
                                      const ChannelSet& set,
                                      const std::vector<std::vector<double>>& norms) {
  const auto channels = static_cast<size_t>(set.channels);
  std::vector<double> read(channels), made(channels);
  bool seen = false;
  for (const size_t i : set.readers) {
    const Layer& layer = source.layers[i];
    const Weights weights(layer);
    const int64_t of_channel = layer.terms / set.channels;
    seen = seen || !norms[i].empty();
    for (int64_t n = 0; n < layer.columns; ++n) {
      for (int64_t t = 0; t < layer.terms; ++t) {
        const double norm = norms[i].empty() ? 1 : norms[i][layer.ChannelOf(n, t)];
        const double saliency = weights.At(n, t) * norm;
        read[static_cast<size_t>(t / of_channel)] += saliency * saliency;
      }
    }
  }
  for (const size_t i : set.makers) {
    const Layer& layer = source.layers[i];
    const Weights weights(layer);
    const ChannelSlot& slot = *std::ranges::find_if(set.slots, [&](const ChannelSlot& each) {
      return each.node == layer.node && each.input == 1 &&
             each.axis == (layer.by_rows ? 0 : layer.weights_data->type.shape.size() - 1);
    });
    for (int64_t n = 0; n < layer.columns; ++n) {
      const auto place = static_cast<size_t>(n / slot.repeat);
      const size_t channel = slot.ids.empty() ? place : static_cast<size_t>(slot.ids[place]);
      for (int64_t t = 0; t < layer.terms; ++t)
        made[channel] += weights.At(n, t) * weights.At(n, t);
    }
  }
  std::vector<double> saliencies;
  for (size_t c = 0; c < channels; ++c)
    saliencies.push_back(std::sqrt(read[c] * (seen ? 1 : made[c])));
  return saliencies;
}

std::vector<bool> LeastSalient(const std::vector<double>& saliencies, int64_t zeros) {
  std::vector<size_t> order(saliencies.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t c) { return saliencies[c]; });
  std::vector<bool> gone(saliencies.size());
  for (size_t k = 0; k < static_cast<size_t>(zeros); ++k) gone[order[k]] = true;
  return gone;
}

std::vector<float> WithoutChannels(const Layer& layer, const std::vector<bool>& gone) {
  std::vector<float> weights = Copied(layer);
  const int64_t of_channel = layer.terms / static_cast<int64_t>(gone.size());
  for (int64_t n = 0; n < layer.columns; ++n)
    for (int64_t t = 0; t < layer.terms; ++t)
      if (gone[static_cast<size_t>(t / of_channel)]) weights[layer.ElementOf(n, t)] = 0;
  return weights;
}

}  // namespace hone::graph::onnx_prune
