#include "ir/workload.h"

#include <algorithm>
#include <array>
#include <limits>

namespace hone::ir {
namespace {

constexpr std::array<std::string_view, 10> kCombinerNames = {
    "none",   "sum",    "product",     "min",         "max",
    "argmin", "argmax", "argmin_last", "argmax_last", "sum_sumsq"};

std::vector<int> OfKind(const Workload& workload, TensorKind kind) {
  std::vector<int> ids;
  for (size_t i = 0; i < workload.tensors.size(); ++i) {
    if (workload.tensors[i].kind == kind) ids.push_back(static_cast<int>(i));
  }
  return ids;
}

}  // namespace

std::string_view ToString(Combiner c) { return kCombinerNames[static_cast<size_t>(c)]; }

std::optional<Combiner> ParseCombiner(std::string_view text) {
  for (size_t i = 0; i < kCombinerNames.size(); ++i) {
    if (kCombinerNames[i] == text) return static_cast<Combiner>(i);
  }
  return std::nullopt;
}

int64_t Tensor::NumElements() const {
  int64_t count = 1;
  for (int64_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count)) return std::numeric_limits<int64_t>::max();
  }
  return count;
}

std::vector<int> Workload::Inputs() const { return OfKind(*this, TensorKind::kInput); }
std::vector<int> Workload::Constants() const { return OfKind(*this, TensorKind::kConstant); }

std::vector<int> Workload::Outputs() const {
  std::vector<int> ids = OfKind(*this, TensorKind::kStage);
  std::erase_if(ids, [this](int id) { return !tensors[static_cast<size_t>(id)].output; });
  return ids;
}

int Workload::Producer(int tensor) const {
  for (size_t s = 0; s < stages.size(); ++s) {
    if (std::ranges::find(stages[s].results, tensor) != stages[s].results.end()) {
      return static_cast<int>(s);
    }
  }
  return -1;
}

std::vector<int> Workload::Readers(int stage) const {
  const std::vector<int>& results = stages[static_cast<size_t>(stage)].results;
  std::vector<int> readers;
  for (size_t s = 0; s < stages.size(); ++s) {
    bool reads = false;
    for (const Expr& body : stages[s].body) {
      Visit(body, [&](const ExprNode& node) {
        reads |=
            node.kind == ExprKind::kLoad && std::ranges::find(results, node.id) != results.end();
      });
    }
    if (reads) readers.push_back(static_cast<int>(s));
  }
  return readers;
}

int Workload::FindStage(std::string_view name) const {
  const auto found = std::ranges::find(stages, name, &Stage::name);
  return found == stages.end() ? -1 : static_cast<int>(found - stages.begin());
}

int Workload::FindTensor(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &Tensor::name);
  return found == tensors.end() ? -1 : static_cast<int>(found - tensors.begin());
}

}  // namespace hone::ir
