#include <numeric>

#include "fmt/format.h"

#include "graph/onnx_import/handler.h"

// Reductions and arg-reductions.
namespace hone::graph::onnx_import {
namespace {

using Shape = std::vector<int64_t>;

enum class EmptyAxes { kReduceAll, kAsAttribute };

void ReduceOver(NodeImport& n, std::string_view fn, Shape axes, EmptyAxes empty) {
  const ValueId x = n.Input(0);
  const int64_t keepdims = n.Int("keepdims", 1) != 0 ? 1 : 0;
  const bool keep_when_empty =
      empty == EmptyAxes::kAsAttribute && n.Int("noop_with_empty_axes", 0) != 0;
  axes = n.Axes(std::move(axes), n.RankOf(x));
  if (!n.ok()) return;
  if (axes.empty() && !keep_when_empty) {
    axes.resize(n.RankOf(x));
    std::iota(axes.begin(), axes.end(), 0);
  }
  // Roots and logarithms of integers are taken in f64.
  const ir::DType dtype = n.DTypeOf(x);
  const bool rooted = fn == "l2" || fn == "log_sum" || fn == "log_sum_exp";
  const ValueId wide = rooted && ir::IsInteger(dtype) ? n.Cast(x, ir::DType::kF64) : x;
  const ValueId y =
      n.Emit("Reduce", {wide}, {{"fn", std::string(fn)}, {"axes", axes}, {"keepdims", keepdims}});
  n.SetOutput(0, n.Cast(y, dtype));
}

constexpr std::pair<std::string_view, std::string_view> kFunctions[] = {
    {"ReduceSum", "sum"},        {"ReduceMean", "mean"},
    {"ReduceMax", "max"},        {"ReduceMin", "min"},
    {"ReduceProd", "prod"},      {"ReduceL1", "l1"},
    {"ReduceL2", "l2"},          {"ReduceSumSquare", "sum_square"},
    {"ReduceLogSum", "log_sum"}, {"ReduceLogSumExp", "log_sum_exp"},
};

std::string_view FunctionOf(const std::string& op) {
  for (const auto& [name, fn] : kFunctions) {
    if (name == op) return fn;
  }
  return "";
}

void ReduceWithAttribute(NodeImport& n) {
  ReduceOver(n, FunctionOf(n.op()), n.Ints("axes"), EmptyAxes::kReduceAll);
}

void Reduce(NodeImport& n) {
  ReduceOver(n, FunctionOf(n.op()), n.Has(1) ? n.KnownInts(1, "the axes") : Shape(),
             EmptyAxes::kAsAttribute);
}

void ArgReduce(NodeImport& n) {
  const ValueId x = n.Input(0);
  Attributes attributes{{"fn", std::string(n.op() == "ArgMax" ? "max" : "min")},
                        {"axis", n.Axis(n.Int("axis", 0), n.RankOf(x))},
                        {"keepdims", int64_t{n.Int("keepdims", 1) != 0}},
                        {"select_last", int64_t{n.Int("select_last_index", 0) != 0}}};
  n.SetOutput(0, n.Emit("ArgReduce", {x}, std::move(attributes)));
}

constexpr Handler kHandlers[] = {
    {"ReduceSum", 1, 1, 1, 1, ReduceWithAttribute},
    {"ReduceSum", 13, 1, 2, 1, Reduce},
    {"ReduceMean", 1, 1, 1, 1, ReduceWithAttribute},
    {"ReduceMean", 18, 1, 2, 1, Reduce},
    {"ReduceMax", 1, 1, 1, 1, ReduceWithAttribute},
    {"ReduceMax", 18, 1, 2, 1, Reduce},
    {"ReduceMin", 1, 1, 1, 1, ReduceWithAttribute},
    {"ReduceMin", 18, 1, 2, 1, Reduce},
    {"ReduceProd", 1, 1, 1, 1, ReduceWithAttribute},
    {"ReduceProd", 18, 1, 2, 1, Reduce},
    {"ReduceL1", 1, 1, 1, 1, ReduceWithAttribute},
    {"ReduceL1", 18, 1, 2, 1, Reduce},
    {"ReduceL2", 1, 1, 1, 1, ReduceWithAttribute},
    {"ReduceL2", 18, 1, 2, 1, Reduce},
    {"ReduceSumSquare", 1, 1, 1, 1, ReduceWithAttribute},
    {"ReduceSumSquare", 18, 1, 2, 1, Reduce},
    {"ReduceLogSum", 1, 1, 1, 1, ReduceWithAttribute},
    {"ReduceLogSum", 18, 1, 2, 1, Reduce},
    {"ReduceLogSumExp", 1, 1, 1, 1, ReduceWithAttribute},
    {"ReduceLogSumExp", 18, 1, 2, 1, Reduce},
    {"ArgMax", 1, 1, 1, 1, ArgReduce},
    {"ArgMin", 1, 1, 1, 1, ArgReduce},
};

}  // namespace

std::span<const Handler> ReduceHandlers() { return kHandlers; }

}  // namespace hone::graph::onnx_import
