#include "costmodel/cuda/cuda_features.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "costmodel/cuda/cuda_launches.h"
#include "costmodel/cuda/row_launch.h"
#include "costmodel/cuda/tile_launch.h"
#include "costmodel/cuda/window_launch.h"
#include "ir/cuda/cuda_target.h"
#include "ir/expr.h"
#include "schedule/cuda/grid.h"
#include "schedule/cuda/parts.h"
#include "schedule/cuda/sums.h"
#include "schedule/nest_builder.h"
#include "schedule/structure.h"
#include "schedule/trace_writer.h"

namespace hone::costmodel {
namespace {

constexpr double kLaunchSeconds = 3e-6;
/// The most parts of a product's sum (schedule/cuda/products.cc).
constexpr int64_t kMostCuts = 16;

/// Operations on values as a roofline counts them (compiler::CostOf): the least there is to do.
double LeastOperations(const ir::Expr& e) {
  if (e->kind == ir::ExprKind::kLoad) return 0;
  if (e->kind == ir::ExprKind::kSelect)
    return std::max(LeastOperations(e->args[1]), LeastOperations(e->args[2]));
  const bool counts = e->kind == ir::ExprKind::kUnary ||
                      (e->kind == ir::ExprKind::kBinary && !ir::IsComparison(e->binary()));
  double count = counts ? 1 : 0;
  for (const ir::Expr& arg : e->args) count += LeastOperations(arg);
  return count;
}

/// The bytes of a factor where tensor cores may make the sum, 2 or 1; 4: they may not.
int64_t NumberBytes(const ir::Stage& stage) {
  const ir::Expr& body = stage.body[0];
  if (stage.combiner != ir::Combiner::kSum || body->kind != ir::ExprKind::kBinary ||
      body->binary() != ir::BinaryOp::kMul)
    return 4;
  const auto all = [&](ir::DType one, ir::DType other) {
    return std::ranges::all_of(body->args, [&](const ir::Expr& factor) {
      if (factor->kind != ir::ExprKind::kCast) return false;
      const ir::DType dtype = factor->args[0]->dtype;
      return dtype == one || dtype == other;
    });
  };
  if (body->dtype == ir::DType::kI32 && all(ir::DType::kI8, ir::DType::kU8)) return 1;
  return all(ir::DType::kF16, ir::DType::kBF16) ? 2 : 4;
}

/// Adds the bytes that the loads of a body read when it is evaluated so often.
void AddLoads(const ir::Workload& workload, const ir::Expr& e, double points,
              std::vector<double>& bytes) {
  if (e->kind == ir::ExprKind::kLoad) {
    const auto tensor = static_cast<size_t>(e->id);
    bytes[tensor] += points * static_cast<double>(ir::SizeOf(workload.tensors[tensor].dtype));
  }
  for (const ir::Expr& arg : e->args) AddLoads(workload, arg, points, bytes);
}

class CudaFeatures final : public CandidateFeatures {
 public:
  explicit CudaFeatures(const schedule::Space& space)
      : space_(space), card_(space.target().As<ir::CudaTarget>()) {
    FindLeast(space.workload());
    FindPlain();
    FindParts();
    least_seconds_ = AnalyticSeconds(space.DefaultId());
    for (uint64_t id = 0; id < std::min<uint64_t>(space.product(), 1 << 14); ++id) {
      least_seconds_ = std::min(least_seconds_, AnalyticSeconds(id));
    }
  }

  void Extract(uint64_t id, std::span<float> row) const override {
    const auto log = [](double x) { return static_cast<float>(std::log2(1 + x)); };
    const double seconds = AnalyticSeconds(id);
    const CudaLaunch most = LongestLaunch(id);
    const double occupancy =
        std::min(1.0, ResidentBlocks(card_, most) * most.threads / card_.most_threads);
    const float values[] = {log(operations_ / 2),
                            log(most.flop),
                            log(most.tensor_flop + most.group_flop + most.byte_op),
                            log(most.blocks),
                            log(Waves(card_, most)),
                            log(most.registers),
                            log(most.shared_bytes),
                            log(most.instructions),
                            log(most.wavefronts),
                            log(most.l2_bytes),
                            log(most.memory_bytes),
                            log(most.threads),
                            log(most.bytes_in_flight),
                            log(most.chain_cycles),
                            static_cast<float>(occupancy),
                            log(LaunchesOf(id)),
                            log(seconds * 1e6),
                            static_cast<float>(std::log2(seconds / least_seconds_))};
    std::ranges::copy(values, row.begin());
  }

  double AnalyticSeconds(uint64_t id) const override {
    double seconds = 0;
    ForEachLaunch(id, [&](const CudaLaunch& launch) {
      seconds += LaunchSeconds(card_, launch) + kLaunchSeconds;
    });
    return std::max(seconds, bound_seconds_);
  }

 private:
  /// A launch of what is neither rows nor a tile.
  struct Other {
    StageLaunches launches;
    bool lanes = false;  ///< a warp for a result
  };
  /// Products whose sums are cut into some number of parts.
  struct Tiles {
    std::vector<TileLaunch> launches;
    std::vector<std::optional<schedule::BlockTile>> nominal;  ///< by launches
    std::vector<std::optional<schedule::WarpTile>> cores;     ///< by launches, of tensor cores
    std::vector<StageLaunches> stages;                        ///< the same on a grid
    std::vector<Other> others;                                ///< beside them
  };

  /// What a roofline says: arithmetic at the card's rate, each byte moved once.
  void FindLeast(const ir::Workload& workload) {
    std::vector<double> read(workload.tensors.size(), 0);
    double narrow = 0, bytes_only = 0, wide = 0;
    for (const ir::Stage& stage : workload.stages) {
      double points = 1;
      double operations =
          stage.combiner == ir::Combiner::kNone ? 0 : static_cast<double>(stage.body.size());
      for (int axis = 0; axis < stage.num_axes(); ++axis)
        points *= static_cast<double>(stage.Extent(axis));
      for (const ir::Expr& body : stage.body) {
        operations += LeastOperations(body);
        AddLoads(workload, body, points, read);
      }
      operations_ += points * operations;
      const int64_t factor = NumberBytes(stage);
      (factor == 1 ? bytes_only : factor == 2 ? narrow : wide) += points * operations;
    }
    double bytes = 0;
    for (size_t i = 0; i < workload.tensors.size(); ++i) {
      const ir::Tensor& tensor = workload.tensors[i];
      const auto all = static_cast<double>(tensor.Bytes());
      const bool given =
          tensor.kind == ir::TensorKind::kInput || tensor.kind == ir::TensorKind::kConstant;
      if (given || tensor.output) bytes += given ? std::min(all, read[i]) : all;
    }
    const double arithmetic = wide / card_.flop_per_second + narrow / card_.tensor_flop_per_second +
                              bytes_only / card_.byte_op_per_second;
    bound_seconds_ = std::max(arithmetic, bytes / card_.memory_bytes_per_second);
  }

  /// The launches of Sketches that leave all Stages to a grid.
  void FindPlain() {
    schedule::TraceWriter writer(space_.workload());
    schedule::FindClusters(writer, -1, -1);
    for (const int id : schedule::LiveStages(writer.schedule()))
      stages_.emplace_back(writer.workload(), writer.stage(id));
  }

  /// Those of the others: rows, tiles and what is neither.
  void FindParts() {
    schedule::TraceWriter writer(space_.workload());
    const schedule::CudaParts parts = schedule::PartsOf(writer);
    FindTiles(writer, parts, 1);
    for (const schedule::Window& window : parts.windows)
      windows_.emplace_back(writer.workload(), window);
    row_numbers_ = schedule::NominalRows(writer, parts.rows);
    for (const schedule::Cluster& cluster : parts.rows) {
      rows_.emplace_back(writer.workload(), cluster);
      for (const int id : cluster.members)
        row_stages_.emplace_back(writer.workload(), writer.stage(id));
      row_stages_.emplace_back(writer.workload(), writer.stage(cluster.owner));
    }
    for (int64_t cuts = 2; cuts <= kMostCuts && !parts.products.empty(); cuts *= 2) {
      schedule::TraceWriter other(space_.workload());
      FindTiles(other, schedule::PartsOf(other, 0, cuts), cuts);
    }
    if (parts.partials.empty()) return;
    for (int64_t partials = 16; partials <= 256; partials *= 2) {
      schedule::TraceWriter other(space_.workload());
      const schedule::CudaParts with = schedule::PartsOf(other, partials);
      others_[partials] = OthersOf(other, with);
    }
  }

  /// The launches of products whose sums are cut into so many parts, and what follows them.
  void FindTiles(const schedule::TraceWriter& writer, const schedule::CudaParts& parts,
                 int64_t cuts) {
    Tiles& tiles = tiles_[cuts];
    for (const schedule::Product& product : parts.products) {
      tiles.launches.emplace_back(writer.workload(), product);
      tiles.nominal.push_back(schedule::NominalBlock(product.axes, card_));
      tiles.cores.push_back(schedule::NominalWarpTile(product.axes, card_));
      tiles.stages.emplace_back(writer.workload(), writer.stage(product.stage));
    }
    tiles.others = OthersOf(writer, parts);
  }

  static std::vector<Other> OthersOf(const schedule::TraceWriter& writer,
                                     const schedule::CudaParts& parts) {
    std::vector<Other> others;
    for (const schedule::CudaParts::Partial& partial : parts.partials)
      others.push_back({{writer.workload(), writer.stage(partial.stage), !partial.along}});
    for (const int id : parts.others) {
      others.push_back({{writer.workload(), writer.stage(id)},
                        schedule::SummedByLanes(writer, id, schedule::PartialsOf(parts, id))});
    }
    return others;
  }

  template <typename Visit>
  void ForEachLaunch(uint64_t id, const Visit& visit) const {
    const auto value = [&](const char* column) { return space_.ValueOf(id, column); };
    if (value("depth") > 0 || value("warp_depth") > 0 || value("group_columns") > 0 ||
        value("row_threads") > 0 || value("window_x") > 0 || value("partials") > 0) {
      ForEachPart(id, visit);
      return;
    }
    const int64_t groups = value("map_groups");
    // A Sketch without these columns schedules what it leaves to the grid as the default does.
    const bool grid = value("threads") > 0;
    const int64_t threads = grid ? value("threads") : schedule::kGridThreads;
    const int64_t elements = grid ? value("elements") : schedule::kGridElements;
    for (const StageLaunches& stage : stages_) {
      if (groups > 0 && stage.is_map())
        visit(stage.OnGrid(value("map_threads"), value("map_elements"), groups));
      else
        visit(stage.OnGrid(threads, elements));
    }
  }

  template <typename Visit>
  void ForEachPart(uint64_t id, const Visit& visit) const {
    const auto value = [&](const char* column) { return space_.ValueOf(id, column); };
    const auto on_grid = [&](const std::vector<StageLaunches>& stages) {
      for (const StageLaunches& stage : stages)
        visit(stage.OnGrid(schedule::kGridThreads, schedule::kGridElements));
    };
    const int64_t row_threads = value("row_threads");
    for (const RowLaunch& row : rows_) {
      if (row_threads > 0)
        visit(row.Of(row_threads, value("block_rows"), value("row_elements")));
      else if (row_numbers_)
        visit(row.Of((*row_numbers_)[0], (*row_numbers_)[1], (*row_numbers_)[2]));
    }
    if (row_threads == 0 && !row_numbers_) on_grid(row_stages_);
    for (const WindowLaunch& window : windows_) visit(WindowOf(id, window));
    const Tiles& tiles = tiles_.at(std::max<int64_t>(1, value("parts")));
    for (size_t i = 0; i < tiles.launches.size(); ++i) visit(TileOf(id, tiles, i));
    const auto others = others_.find(value("partials"));
    for (const Other& other : others == others_.end() ? tiles.others : others->second) {
      visit(other.lanes ? other.launches.OnLanes(schedule::kWarpsOfSums)
                        : other.launches.OnGrid(schedule::kGridThreads, schedule::kGridElements));
    }
  }

  /// One of the products' launches; as by default where the Sketch is about others.
  CudaLaunch TileOf(uint64_t id, const Tiles& tiles, size_t i) const {
    const auto value = [&](const char* column) { return space_.ValueOf(id, column); };
    const TileLaunch& launch = tiles.launches[i];
    const int64_t stages = std::max<int64_t>(1, value("stages"));
    if (value("depth") > 0) {
      return launch.Of(schedule::BlockTile{
          value("threads_y"), value("rows"), value("threads_x"), value("vectors"),
          schedule::SliceDepth(launch.axes(), value("depth")), stages});
    }
    if (value("warp_depth") > 0 && schedule::SuitsTensorCores(launch.axes())) {
      const schedule::WarpTile tile = {value("warps_y"),
                                       value("warp_rows"),
                                       value("warps_x"),
                                       value("warp_columns"),
                                       schedule::WarpSliceDepth(launch.axes(), value("warp_depth")),
                                       stages,
                                       launch.axes().number_bytes,
                                       value("warp_through") > 0};
      if (tile.Misfit(launch.axes()).empty()) return launch.Of(tile);
    }
    if (value("group_columns") > 0 && schedule::SuitsGroups(launch.axes(), card_)) {
      const schedule::GroupTile tile = {value("groups"), value("group_rows"),
                                        value("group_columns"), stages, value("boxes") > 0};
      if (tile.Misfit(launch.axes()).empty()) return launch.Of(tile);
    }
    if (tiles.cores[i]) return launch.Of(*tiles.cores[i]);
    if (tiles.nominal[i]) return launch.Of(*tiles.nominal[i]);
    return tiles.stages[i].OnGrid(schedule::kGridThreads, schedule::kGridElements);
  }

  /// A window's launch; as by default where the Sketch is about others.
  CudaLaunch WindowOf(uint64_t id, const WindowLaunch& window) const {
    const auto value = [&](const char* column) { return space_.ValueOf(id, column); };
    const schedule::WindowTile tile = {value("window_x"), value("window_y"),
                                       value("window_columns"), value("window_rows")};
    if (tile.threads_x > 0 && tile.Misfit(window.axes(), card_.block_shared_bytes).empty())
      return window.Of(tile);
    return window.Of(schedule::NominalWindow(window.axes(), card_.multiprocessors).value_or(tile));
  }

  double LaunchesOf(uint64_t id) const {
    double count = 0;
    ForEachLaunch(id, [&](const CudaLaunch&) { ++count; });
    return count;
  }

  CudaLaunch LongestLaunch(uint64_t id) const {
    CudaLaunch longest;
    double most = -1;
    ForEachLaunch(id, [&](const CudaLaunch& launch) {
      const double seconds = LaunchSeconds(card_, launch);
      if (seconds <= most) return;
      most = seconds;
      longest = launch;
    });
    return longest;
  }

  const schedule::Space& space_;
  const ir::CudaTarget& card_;
  double operations_ = 0, bound_seconds_ = 0;
  std::vector<StageLaunches> stages_;             ///< each a launch
  std::vector<StageLaunches> row_stages_;         ///< the same, of prepared rows
  std::map<int64_t, std::vector<Other>> others_;  ///< by partial results
  std::vector<RowLaunch> rows_;
  std::vector<WindowLaunch> windows_;
  std::optional<schedule::Values> row_numbers_;
  std::map<int64_t, Tiles> tiles_;  ///< by parts of their sums
  double least_seconds_ = 0;
};

}  // namespace

const FeaturesOfKind& CudaFeaturesOf() {
  class Kind final : public FeaturesOfKind {
   public:
    const FeatureSchema& columns() const override {
      constexpr bool kLog = true;
      // Those from flop to occupancy are of the longest launch.
      static const FeatureSchema columns = {
          {"operations", kLog},      {"flop", kLog},         {"tensor_flop", kLog},
          {"blocks", kLog},          {"waves", kLog},        {"registers", kLog},
          {"shared_bytes", kLog},    {"instructions", kLog}, {"wavefronts", kLog},
          {"l2_bytes", kLog},        {"memory_bytes", kLog}, {"threads", kLog},
          {"bytes_in_flight", kLog}, {"chain_cycles", kLog}, {"occupancy"},
          {"launches", kLog},        {"analytic_us", kLog},  {kAnalyticOverBest},
      };
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
