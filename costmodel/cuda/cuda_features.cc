#include "costmodel/cuda/cuda_features.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "ir/cuda/cuda_target.h"
#include "schedule/cuda/tile.h"

namespace hone::costmodel {
namespace {

constexpr double kLaunchSeconds = 3e-6;

class CudaFeatures final : public CandidateFeatures {
 public:
  explicit CudaFeatures(const schedule::Space& space)
      : space_(space), card_(space.target().As<ir::CudaTarget>()) {
    const ir::Workload& workload = space.workload();
    for (const ir::Stage& stage : workload.stages) {
      double points = 1, results = 1;
      for (int axis = 0; axis < stage.num_axes(); ++axis) {
        points *= static_cast<double>(stage.Extent(axis));
        if (axis < stage.num_spatial()) results *= static_cast<double>(stage.Extent(axis));
      }
      flop_ += 2 * points;
      results_ = std::max(results_, results);
    }
    for (const ir::Tensor& tensor : workload.tensors) {
      if (tensor.kind != ir::TensorKind::kImmediate) bytes_ += static_cast<double>(tensor.Bytes());
    }
    stages_ = static_cast<double>(workload.stages.size());
    for (const ir::Stage& stage : workload.stages) {
      const auto product = schedule::FindProduct(workload, stage);
      if (product && (!product_ || Points(*product) > Points(*product_))) product_ = product;
    }
    least_seconds_ = AnalyticSeconds(space.DefaultId());
    for (uint64_t id = 0; id < std::min<uint64_t>(space.product(), 1 << 14); ++id) {
      least_seconds_ = std::min(least_seconds_, AnalyticSeconds(id));
    }
  }

  FeatureVector Extract(uint64_t id) const override {
    const auto log = [](double x) { return static_cast<float>(std::log2(1 + x)); };
    const double seconds = AnalyticSeconds(id);
    FeatureVector features{};
    features[0] = log(flop_ / 2);
    features[1] = log(results_);
    features[10] = static_cast<float>(space_.ValueOf(id, "threads"));
    features[11] = static_cast<float>(space_.ValueOf(id, "elements"));
    const schedule::BlockTile tile = TileOf(id);
    features[17] = static_cast<float>(tile.depth > 0 ? Resident(tile) : Occupancy(id));
    if (tile.depth > 0) features[10] = static_cast<float>(tile.threads());
    features[38] = log(seconds * 1e6);
    features[kAnalyticOverBest] = static_cast<float>(std::log2(seconds / least_seconds_));
    return features;
  }

  double AnalyticSeconds(uint64_t id) const override {
    const schedule::BlockTile tile = TileOf(id);
    if (product_ && tile.depth > 0) return TiledSeconds(tile) + kLaunchSeconds * stages_;
    // Without tiles every multiply-add of a product loads its factors anew.
    const auto elements = static_cast<double>(std::max<int64_t>(1, space_.ValueOf(id, "elements")));
    const double issued = product_ ? 1 + kFmasOfALoad * (1 + 1 / elements) : 1;
    const double busy =
        std::max(bytes_ / card_.memory_bytes_per_second, issued * flop_ / card_.flop_per_second);
    return busy / Occupancy(id) + kLaunchSeconds * stages_;
  }

 private:
  static double Points(const schedule::ProductAxes& axes) {
    return static_cast<double>(axes.batches) * static_cast<double>(axes.rows) *
           static_cast<double>(axes.columns) * static_cast<double>(axes.depth);
  }

  /// Depth 0: the point is no tile.
  schedule::BlockTile TileOf(uint64_t id) const {
    const auto value = [&](const char* column) { return space_.ValueOf(id, column); };
    return {value("threads_y"), value("rows"), value("threads_x"), value("vectors"),
            value("depth")};
  }

  /// Blocks of a tile that an SM holds at once: threads, registers and shared memory bound them.
  double Resident(const schedule::BlockTile& tile) const {
    const auto threads = static_cast<double>(tile.threads());
    const double sums = static_cast<double>(tile.rows * tile.vectors) * schedule::BlockTile::kLanes;
    const double registers = threads * std::min(255.0, sums + kOtherRegisters);
    const double most = std::min(
        {static_cast<double>(card_.most_threads) / threads,
         static_cast<double>(card_.registers) / registers,
         static_cast<double>(card_.shared_bytes) / static_cast<double>(tile.shared_bytes()),
         kMostBlocks});
    return std::max(1.0, std::floor(most));
  }

  /// Waves of blocks, each as long as its SM needs for arithmetic with what it loads from shared
  /// memory; never less than all slices take from the L2, or every tensor from memory.
  double TiledSeconds(const schedule::BlockTile& tile) const {
    const double blocks = static_cast<double>(schedule::BlocksOf(*product_, tile));
    const double places = card_.multiprocessors * Resident(tile);
    const double waves = std::ceil(blocks / places);
    const auto rows = static_cast<double>(tile.rows);
    const auto columns = static_cast<double>(tile.vectors * schedule::BlockTile::kLanes);
    // An instruction loads one element of a column, or a vector of a row.
    const double issued = rows * columns + rows + columns / schedule::BlockTile::kLanes;
    const auto depth = static_cast<double>(product_->depth);
    const double area = static_cast<double>(tile.block_rows() * tile.block_columns());
    const double rate = card_.flop_per_second / card_.multiprocessors * rows * columns / issued;
    const double busy = std::min(blocks, places) / std::min<double>(blocks, card_.multiprocessors);
    const double arithmetic = waves * busy * 2 * area * depth / rate;
    const double sliced =
        4 * blocks * depth * static_cast<double>(tile.block_rows() + tile.block_columns());
    return std::max({arithmetic, sliced / (kL2OverMemory * card_.memory_bytes_per_second),
                     bytes_ / card_.memory_bytes_per_second});
  }

  /// Share of the card's resident threads that work, on average over the waves of blocks.
  double Occupancy(uint64_t id) const {
    const auto threads = static_cast<double>(std::max<int64_t>(1, space_.ValueOf(id, "threads")));
    const auto elements = static_cast<double>(std::max<int64_t>(1, space_.ValueOf(id, "elements")));
    const double blocks = std::ceil(results_ / (threads * elements));
    const double places = card_.multiprocessors * std::max(1.0, card_.most_threads / threads);
    return blocks / (std::ceil(blocks / places) * places);
  }

  /// Multiply-adds that an SM does in the time of a load from its cache.
  static constexpr double kFmasOfALoad = 4;
  static constexpr double kOtherRegisters = 48, kMostBlocks = 32, kL2OverMemory = 2.5;

  const schedule::Space& space_;
  const ir::CudaTarget& card_;
  double flop_ = 0, bytes_ = 0, results_ = 1, stages_ = 1;
  double least_seconds_ = 0;
  std::optional<schedule::ProductAxes> product_;  ///< the one with most work
};

}  // namespace

const FeaturesOfKind& CudaFeaturesOf() {
  class Kind final : public FeaturesOfKind {
   public:
    const FeatureSchema& columns() const override {
      static const FeatureSchema columns = [] {
        FeatureSchema made;
        const auto name = [&](size_t column, std::string_view text, bool logarithm) {
          made.names[column] = text;
          made.logarithm[column] = logarithm;
        };
        name(0, "multiply_adds", true);
        name(1, "results", true);
        name(10, "threads", false);
        name(11, "elements", false);
        name(17, "occupancy", false);
        name(38, "analytic_us", true);
        name(kAnalyticOverBest, "analytic_over_best", false);
        return made;
      }();
      return columns;
    }
    std::unique_ptr<const CandidateFeatures> Of(const schedule::Space& space) const override {
      return std::make_unique<CudaFeatures>(space);
    }
  };
  static const Kind kind;
  return kind;
}

}  // namespace hone::costmodel
