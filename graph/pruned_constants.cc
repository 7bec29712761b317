#include "graph/pruned_constants.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "ir/kept_panels.h"
#include "ir/panel_product.h"

namespace hone::graph {
namespace {

/// Smaller matrices are too quickly multiplied by for zeros to count.
constexpr int64_t kLeastColumns = 16, kLeastTerms = 32;

/// Whether at least a quarter of the values is zero. It does not look at all of dense weights.
bool HasManyZeros(std::span<const float> values) {
  constexpr size_t kAtOnce = 4096;
  const size_t most = values.size() - values.size() / 4;
  size_t others = 0;
  for (size_t first = 0; first < values.size(); first += kAtOnce) {
    const std::span<const float> some =
        values.subspan(first, std::min(kAtOnce, values.size() - first));
    others += static_cast<size_t>(
        std::ranges::count_if(some, [](float value) { return value != 0; }));
    if (others > most) return false;
  }
  return true;
}

}  // namespace

void StatePanels(const Graph& graph, GroupWorkload& group) {
  ir::Workload& workload = group.workload;
  const std::vector<int> constants = workload.Constants();
  for (size_t s = 0; s < workload.stages.size(); ++s) {
    const std::optional<ir::PanelProduct> product =
        ir::FindPanelProduct(workload, static_cast<int>(s));
    if (!product) continue;
    ir::Tensor& tensor = workload.tensors[static_cast<size_t>(product->weights)];
    const std::optional<ir::MatrixForm> matrix = ir::MatrixOf(tensor, product->dim);
    if (!matrix || matrix->columns < kLeastColumns || matrix->terms < kLeastTerms) continue;
    const auto at = std::ranges::find(constants, product->weights) - constants.begin();
    const ValueId value = group.constants[static_cast<size_t>(at)];
    const ConstantPtr& data = graph.values[static_cast<size_t>(value)].constant;
    if (data == nullptr || data->type.dtype != ir::DType::kF32 ||
        data->bytes.size() != static_cast<size_t>(tensor.Bytes()))
      continue;
    const std::span<const float> values(reinterpret_cast<const float*>(data->bytes.data()),
                                        data->bytes.size() / sizeof(float));
    if (HasManyZeros(values)) ir::SetPanels(tensor, ir::CountPanels(*matrix, product->dim, values));
  }
}

}  // namespace hone::graph
