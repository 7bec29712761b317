#include "schedule/cuda/cuda_rules.h"

#include <utility>

#include "schedule/cuda/grid.h"
#include "schedule/cuda/maps.h"
#include "schedule/cuda/mma.h"
#include "schedule/cuda/products.h"
#include "schedule/cuda/rows.h"
#include "schedule/cuda/sums.h"
#include "schedule/cuda/wgmma.h"
#include "schedule/cuda/windows.h"

namespace hone::schedule {

namespace {

class AllSketches final : public KindSketches {
 public:
  std::vector<Sketch> Sketches(const ir::Workload& workload, const ir::Target& target,
                               ir::AccuracyClass) const override {
    std::vector<Sketch> all;
    // The default is the first that has one.
    auto wgmma = WgmmaSketch(workload, target);
    const bool first = wgmma && IsDefaultWgmma(*wgmma);
    if (first) all.push_back(*std::move(wgmma));
    if (auto mma = MmaSketch(workload, target)) all.push_back(*std::move(mma));
    if (wgmma && !first) all.push_back(*std::move(wgmma));
    if (auto products = ProductsSketch(workload, target)) all.push_back(*std::move(products));
    if (auto rows = RowsSketch(workload, target)) all.push_back(*std::move(rows));
    if (auto windows = WindowsSketch(workload, target)) all.push_back(*std::move(windows));
    if (auto sums = SumsSketch(workload, target)) all.push_back(*std::move(sums));
    all.push_back(GridSketch(workload));
    if (auto maps = MapsSketch(workload)) all.push_back(*std::move(maps));
    return all;
  }

  Sketch DefaultSketch(const ir::Workload& workload, const ir::Target& target) const override {
    auto wgmma = WgmmaSketch(workload, target);
    if (wgmma && IsDefaultWgmma(*wgmma)) return *std::move(wgmma);
    if (auto mma = MmaSketch(workload, target)) return *std::move(mma);
    if (auto products = ProductsSketch(workload, target)) return *std::move(products);
    auto rows = RowsSketch(workload, target);
    if (rows && rows->rule->Default(*rows)) return *std::move(rows);
    if (auto windows = WindowsSketch(workload, target)) return *std::move(windows);
    auto sums = SumsSketch(workload, target);
    return sums ? *std::move(sums) : GridSketch(workload);
  }
};

}  // namespace

const KindSketches& CudaSketches() {
  static const AllSketches sketches;
  return sketches;
}

}  // namespace hone::schedule
