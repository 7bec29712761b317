#include "costmodel/cuda/cuda_features.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "costmodel/cuda/cuda_launches.h"
#include "costmodel/cuda/row_launch.h"
#include "ir/cuda/cuda_target.h"
#include "ir/expr.h"
#include "schedule/cuda/grid.h"
#include "schedule/cuda/rows.h"
#include "schedule/nest_builder.h"
#include "schedule/structure.h"
#include "schedule/trace_writer.h"

namespace hone::costmodel {
namespace {

constexpr double kLaunchSeconds = 3e-6;

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
    schedule::TraceWriter writer(space.workload());
    std::set<int> in_rows;
    for (const schedule::Cluster& cluster : schedule::RowClusters(writer)) {
      rows_.emplace_back(writer.workload(), cluster);
      in_rows.insert(cluster.owner);
      in_rows.insert(cluster.members.begin(), cluster.members.end());
    }
    for (const int id : schedule::LiveStages(writer.schedule())) {
      stages_.emplace_back(writer.workload(), writer.stage(id));
      in_rows_.push_back(in_rows.contains(id));
      const auto& product = stages_.back().product();
      nominal_.push_back(product ? schedule::NominalBlock(*product, card_) : std::nullopt);
    }
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
                            log(static_cast<double>(stages_.size())),
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
  /// What a roofline says: arithmetic at the card's rate, each byte moved once.
  void FindLeast(const ir::Workload& workload) {
    std::vector<double> read(workload.tensors.size(), 0);
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
    }
    double bytes = 0;
    for (size_t i = 0; i < workload.tensors.size(); ++i) {
      const ir::Tensor& tensor = workload.tensors[i];
      const auto all = static_cast<double>(tensor.Bytes());
      const bool given =
          tensor.kind == ir::TensorKind::kInput || tensor.kind == ir::TensorKind::kConstant;
      if (given || tensor.output) bytes += given ? std::min(all, read[i]) : all;
    }
    bound_seconds_ =
        std::max(operations_ / card_.flop_per_second, bytes / card_.memory_bytes_per_second);
  }

  template <typename Visit>
  void ForEachLaunch(uint64_t id, const Visit& visit) const {
    const auto value = [&](const char* column) { return space_.ValueOf(id, column); };
    const schedule::BlockTile tile = {value("threads_y"), value("rows"), value("threads_x"),
                                      value("vectors"), value("depth")};
    // A Sketch without these columns schedules what it leaves to the grid as the default does.
    const bool grid = value("threads") > 0;
    const int64_t threads = grid ? value("threads") : schedule::kGridThreads;
    const int64_t elements = grid ? value("elements") : schedule::kGridElements;
    const int64_t groups = value("map_groups");
    const int64_t row_threads = value("row_threads");
    if (row_threads > 0) {
      for (const RowLaunch& row : rows_)
        visit(row.Of(row_threads, value("block_rows"), value("row_elements")));
    }
    for (size_t i = 0; i < stages_.size(); ++i) {
      const StageLaunches& stage = stages_[i];
      if (row_threads > 0 && in_rows_[i]) continue;
      const bool tiled =
          tile.depth > 0 && stage.product() && stage.product()->depth % tile.depth == 0;
      const auto& nominal = nominal_[i];  // of a product beside rows
      if (tiled)
        visit(stage.Tiled(tile));
      else if (row_threads > 0 && nominal)
        visit(stage.Tiled(*nominal));
      else if (groups > 0 && stage.is_map())
        visit(stage.OnGrid(value("map_threads"), value("map_elements"), groups));
      else
        visit(stage.OnGrid(threads, elements));
    }
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
  std::vector<StageLaunches> stages_;
  std::vector<bool> in_rows_;    ///< by stages_: its launch can be one of rows_
  std::vector<RowLaunch> rows_;  ///< by cluster
  std::vector<std::optional<schedule::BlockTile>> nominal_;  ///< by stages_
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
          {"operations", kLog},   {"flop", kLog},       {"blocks", kLog},
          {"waves", kLog},        {"registers", kLog},  {"shared_bytes", kLog},
          {"instructions", kLog}, {"wavefronts", kLog}, {"l2_bytes", kLog},
          {"memory_bytes", kLog}, {"threads", kLog},    {"bytes_in_flight", kLog},
          {"chain_cycles", kLog}, {"occupancy"},        {"launches", kLog},
          {"analytic_us", kLog},  {kAnalyticOverBest},
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
