#include <algorithm>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/ops/activation.h"
#include "graph/ops/definitions.h"
#include "graph/ops/operand.h"

// LSTM, GRU and RNN with ONNX's inputs (X [T, B, I], W [D, G·H, I], R [D, G·H, H], B [D, 2·G·H],
// sequence_lens, initial_h, then for the LSTM initial_c and P) and outputs Y [T, D, B, H], Y_h, Y_c
// [D, B, H]. The products with x are Stages over all steps outside the scan; inside it step t of
// the reverse direction works on time T-1-t (or len-1-t), so every region counts upwards.
namespace hone::graph::ops {
namespace {

using ir::DType;
using ir::Expr;
using ir::WorkloadBuilder;
using Tensors = std::vector<int>;

enum class Cell { kRnn = 1, kGru = 3, kLstm = 4 };

struct Geometry {
  Cell cell = Cell::kRnn;
  int64_t gates = 1;
  int64_t steps = 0;
  int64_t batch = 0;
  int64_t input = 0;
  int64_t hidden = 0;
  int64_t directions = 1;
  bool first_reverse = false;
  std::vector<Activation> activations;
};

enum Input { kX, kW, kR, kB, kLens, kInitialH, kInitialC, kPeephole };

bool Has(const OpCall& call, size_t i) { return i < call.inputs.size() && call.inputs[i].present; }

absl::Status Expect(const OpCall& call, size_t i, std::string_view name, const Shape& shape) {
  if (!Has(call, i)) return absl::OkStatus();
  const DType dtype = i == kLens ? call.inputs[i].type.dtype : call.inputs[kX].type.dtype;
  const TensorType wanted{dtype, shape};
  if (call.inputs[i].type == wanted && (i != kLens || ir::IsInteger(dtype)))
    return absl::OkStatus();
  return Invalid(
      fmt::format("{} must be {}, not {}", name, ToText(wanted), ToText(call.inputs[i].type)));
}

absl::StatusOr<Geometry> GeometryOf(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 3));
  Geometry g;
  g.cell = call.op == "LSTM" ? Cell::kLstm : call.op == "GRU" ? Cell::kGru : Cell::kRnn;
  g.gates = static_cast<int64_t>(g.cell);
  const TensorType& x = call.inputs[kX].type;
  const Shape& r = call.inputs[kR].type.shape;
  if (x.shape.size() != 3 || r.size() != 3) return Invalid("X and R must have rank 3");
  if (!ir::IsFloat(x.dtype))
    return Invalid(fmt::format("it takes floats, not {}", ToString(x.dtype)));
  g.steps = x.shape[0];
  g.batch = x.shape[1];
  g.input = x.shape[2];
  g.hidden = r[2];
  if (call.Int("hidden_size", g.hidden) != g.hidden)
    return Invalid(fmt::format("hidden_size must be {}, the last extent of R", g.hidden));
  const std::string direction = call.String("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return Invalid(
        fmt::format("direction must be forward, reverse or bidirectional, not '{}'", direction));
  }
  g.directions = direction == "bidirectional" ? 2 : 1;
  g.first_reverse = direction == "reverse";
  const int64_t rows = g.gates * g.hidden;
  HONE_RETURN_IF_ERROR(Expect(call, kW, "W", {g.directions, rows, g.input}));
  HONE_RETURN_IF_ERROR(Expect(call, kR, "R", {g.directions, rows, g.hidden}));
  HONE_RETURN_IF_ERROR(Expect(call, kB, "B", {g.directions, 2 * rows}));
  HONE_RETURN_IF_ERROR(Expect(call, kLens, "sequence_lens", {g.batch}));
  HONE_RETURN_IF_ERROR(Expect(call, kInitialH, "initial_h", {g.directions, g.batch, g.hidden}));
  HONE_RETURN_IF_ERROR(Expect(call, kInitialC, "initial_c", {g.directions, g.batch, g.hidden}));
  HONE_RETURN_IF_ERROR(Expect(call, kPeephole, "P", {g.directions, 3 * g.hidden}));
  const size_t functions = g.cell == Cell::kLstm ? 3 : g.cell == Cell::kGru ? 2 : 1;
  const std::vector<std::string> otherwise =
      g.cell == Cell::kLstm  ? std::vector<std::string>{"sigmoid", "tanh", "tanh"}
      : g.cell == Cell::kGru ? std::vector<std::string>{"sigmoid", "tanh"}
                             : std::vector<std::string>{"tanh"};
  HONE_ASSIGN_OR_RETURN(
      g.activations,
      ReadActivations(call, functions * static_cast<size_t>(g.directions), otherwise));
  return g;
}

absl::StatusOr<Types> InferRecurrent(const OpCall& call) {
  HONE_ASSIGN_OR_RETURN(const Geometry g, GeometryOf(call));
  const DType dtype = call.inputs[kX].type.dtype;
  const TensorType state{dtype, {g.directions, g.batch, g.hidden}};
  Types types = {{dtype, {g.steps, g.directions, g.batch, g.hidden}}, state};
  if (g.cell == Cell::kLstm) types.push_back(state);
  return types;
}

/// The Stages of one direction. Inside the scan the axes are t, b, j.
class Direction {
 public:
  Direction(const OpCall& call, WorkloadBuilder& builder, const Tensors& tensors, const Geometry& g,
            int64_t number)
      : call_(call),
        builder_(builder),
        tensors_(tensors),
        g_(g),
        number_(number),
        type_(AccumulatorType(call.inputs[kX].type.dtype)) {}

  void Build() {
    projected_ = Project();
    scan_ = builder_.AddScan();
    h_ = builder_.ReserveResult(type_, {g_.steps, g_.batch, g_.hidden});
    if (g_.cell == Cell::kLstm) BuildLstm();
    if (g_.cell == Cell::kGru) BuildGru();
    if (g_.cell == Cell::kRnn) BuildRnn();
  }

  /// h at natural time t of batch row b, zero behind the row's end.
  Expr Output(const Expr& t, const Expr& b, const Expr& j) const {
    if (!HasLens()) return builder_.At(h_, {reverse() ? ir::Int(g_.steps - 1) - t : t, b, j});
    const Expr value = builder_.At(h_, {reverse() ? Inside(Length(b) - 1 - t) : t, b, j});
    return ir::Select(ir::Lt(t, Length(b)), value, ir::Const(type_, 0));
  }
  Expr LastH(const Expr& b, const Expr& j) const {
    return builder_.At(h_, {ir::Int(g_.steps - 1), b, j});
  }
  Expr LastC(const Expr& b, const Expr& j) const {
    return builder_.At(c_, {ir::Int(g_.steps - 1), b, j});
  }

 private:
  bool reverse() const { return number_ == 1 || g_.first_reverse; }
  bool HasLens() const { return Has(call_, kLens); }
  Expr Length(const Expr& b) const {
    return ir::Cast(DType::kI64, ReadAt(call_, builder_, tensors_, kLens, {b}));
  }
  /// A time drawn into [0, T): what a guard leaves never acts, but the index must be inside.
  Expr Inside(const Expr& t) const {
    return ir::Min(ir::Max(t, ir::Int(0)), ir::Int(g_.steps - 1));
  }
  Expr Read(size_t input, Exprs at) const {
    at.insert(at.begin(), ir::Int(number_));
    return ir::Cast(type_, ReadAt(call_, builder_, tensors_, input, std::move(at)));
  }
  const Activation& Function(size_t i) const {
    return g_.activations[static_cast<size_t>(number_) *
                              (g_.activations.size() / static_cast<size_t>(g_.directions)) +
                          i];
  }
  Expr Activate(size_t i, const Expr& x) const {
    return Apply(Function(i), x, call_.Float("clip", 0));
  }
  bool linear_before_reset() const { return call_.Int("linear_before_reset", 0) != 0; }

  /// x·W plus both biases, for all times. The GRU's last gate keeps its recurrent bias for the scan
  /// when that is multiplied by the reset gate.
  int Project() {
    const int64_t rows = g_.gates * g_.hidden;
    const Expr t = ir::Var(0), b = ir::Var(1), row = ir::Var(2), k = ir::Var(3);
    const Shape shape{g_.steps, g_.batch, rows};
    const int product = builder_.AddReduce(
        shape, {g_.input}, ir::Combiner::kSum,
        ir::Cast(type_, builder_.At(tensors_[kX], {t, b, k})) *
            ir::Cast(type_, builder_.At(tensors_[kW], {ir::Int(number_), row, k})));
    if (!Has(call_, kB)) return product;
    Expr recurrent = Read(kB, {row + rows});
    if (g_.cell == Cell::kGru && linear_before_reset()) {
      recurrent = ir::Select(ir::Lt(row, ir::Int(2 * g_.hidden)), recurrent, ir::Const(type_, 0));
    }
    return builder_.AddMap(shape, builder_.At(product, {t, b, row}) + Read(kB, {row}) + recurrent);
  }

  /// Gate `gate` of the projection at step t: (t, b, j) are Var 0 to 2.
  Expr Projected(int64_t gate) const {
    Expr time = t();
    if (reverse() && !HasLens()) time = ir::Int(g_.steps - 1) - time;
    if (reverse() && HasLens()) time = Inside(Length(b()) - 1 - time);
    return builder_.At(projected_, {time, b(), j() + gate * g_.hidden});
  }
  static Expr t() { return ir::Var(0); }
  static Expr b() { return ir::Var(1); }
  static Expr j() { return ir::Var(2); }

  /// A carried value one step earlier, the initial one at the first.
  Expr Before(int carried, size_t initial, const Expr& unit) const {
    const Expr start = Has(call_, initial) ? Read(initial, {b(), unit}) : ir::Const(type_, 0);
    return ir::Select(ir::Ge(t(), ir::Int(1)), builder_.At(carried, {t() - 1, b(), unit}), start);
  }

  int AddInScan(Shape spatial, Shape reduce, Expr body, int result = -1) {
    ir::Stage stage;
    stage.spatial = std::move(spatial);
    stage.reduce = std::move(reduce);
    stage.combiner = stage.reduce.empty() ? ir::Combiner::kNone : ir::Combiner::kSum;
    stage.body = {std::move(body)};
    if (result >= 0) stage.results = {result};
    stage.scan = scan_;
    return builder_.AddStage(std::move(stage))[0];
  }

  /// h(t-1)·R over rows [first, first + count).
  int Recur(int64_t first, int64_t count) {
    const Expr k = ir::Var(3);
    return AddInScan(
        {g_.steps, g_.batch, count}, {g_.hidden},
        Before(h_, kInitialH, k) *
            ir::Cast(type_, builder_.At(tensors_[kR], {ir::Int(number_), j() + first, k})));
  }

  /// The new state where the row still runs, the old one behind its end.
  Expr WhileRunning(const Expr& next, const Expr& before) const {
    return HasLens() ? ir::Select(ir::Lt(t(), Length(b())), next, before) : next;
  }

  int AddState(Expr body, int result) {
    return AddInScan({g_.steps, g_.batch, g_.hidden}, {}, std::move(body), result);
  }

  void BuildRnn() {
    const int recurrent = Recur(0, g_.hidden);
    const Expr next = Activate(0, Projected(0) + builder_.At(recurrent, {t(), b(), j()}));
    AddState(WhileRunning(next, Before(h_, kInitialH, j())), h_);
  }

  void BuildLstm() {
    c_ = builder_.ReserveResult(type_, {g_.steps, g_.batch, g_.hidden});
    const int recurrent = Recur(0, 4 * g_.hidden);
    const bool peephole = Has(call_, kPeephole);
    const Expr c_before = Before(c_, kInitialC, j());
    const auto gate = [&](int64_t n, int64_t p, const Expr& c) {
      Expr sum = Projected(n) + builder_.At(recurrent, {t(), b(), j() + n * g_.hidden});
      return peephole && p >= 0 ? sum + Read(kPeephole, {j() + p * g_.hidden}) * c : sum;
    };
    const Expr input = Activate(0, gate(0, 0, c_before));
    const Expr forget = call_.Int("input_forget", 0) != 0 ? ir::Const(type_, 1) - input
                                                          : Activate(0, gate(2, 2, c_before));
    const Expr next_c = forget * c_before + input * Activate(1, gate(3, -1, c_before));
    AddState(WhileRunning(next_c, c_before), c_);
    const Expr c = builder_.At(c_, {t(), b(), j()});
    const Expr next_h =
        Activate(0, gate(1, 1, c)) * Apply(Function(2), c, 0);  // c itself is not clipped
    AddState(WhileRunning(next_h, Before(h_, kInitialH, j())), h_);
  }

  void BuildGru() {
    const bool linear = linear_before_reset();
    const int recurrent = Recur(0, (linear ? 3 : 2) * g_.hidden);
    const auto recurred = [&](int64_t n) {
      return builder_.At(recurrent, {t(), b(), j() + n * g_.hidden});
    };
    const Expr h_before = Before(h_, kInitialH, j());
    const Expr update = Activate(0, Projected(0) + recurred(0));
    const Expr reset = Activate(0, Projected(1) + recurred(1));
    Expr candidate;
    if (linear) {
      Expr inner = recurred(2);
      if (Has(call_, kB)) inner = inner + Read(kB, {j() + 5 * g_.hidden});
      candidate = Activate(1, Projected(2) + reset * inner);
    } else {
      const int kept = AddState(reset * h_before, -1);
      const Expr k = ir::Var(3);
      const int product = AddInScan(
          {g_.steps, g_.batch, g_.hidden}, {g_.hidden},
          builder_.At(kept, {t(), b(), k}) *
              ir::Cast(type_,
                       builder_.At(tensors_[kR], {ir::Int(number_), j() + 2 * g_.hidden, k})));
      candidate = Activate(1, Projected(2) + builder_.At(product, {t(), b(), j()}));
    }
    const Expr next = (ir::Const(type_, 1) - update) * candidate + update * h_before;
    AddState(WhileRunning(next, h_before), h_);
  }

  const OpCall& call_;
  WorkloadBuilder& builder_;
  const Tensors& tensors_;
  const Geometry& g_;
  int64_t number_;
  DType type_;
  int projected_ = -1;
  int scan_ = -1;
  int h_ = -1;
  int c_ = -1;
};

absl::StatusOr<Tensors> ExpressRecurrent(const OpCall& call, WorkloadBuilder& builder,
                                         const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Geometry g, GeometryOf(call));
  const DType dtype = call.inputs[kX].type.dtype;
  std::vector<Direction> directions;
  for (int64_t d = 0; d < g.directions; ++d) {
    directions.emplace_back(call, builder, tensors, g, d);
    directions.back().Build();
  }
  /// What both directions give, chosen by the direction's axis.
  const auto merged = [&](const Expr& d, auto value) {
    Expr result = value(directions[0]);
    if (g.directions == 2) result = ir::Select(ir::Lt(d, ir::Int(1)), result, value(directions[1]));
    return ir::Cast(dtype, result);
  };
  const Expr v0 = ir::Var(0), v1 = ir::Var(1), v2 = ir::Var(2), v3 = ir::Var(3);
  Tensors outputs = {
      builder.AddMap({g.steps, g.directions, g.batch, g.hidden},
                     merged(v1, [&](const Direction& d) { return d.Output(v0, v2, v3); }))};
  const Shape state{g.directions, g.batch, g.hidden};
  outputs.push_back(
      builder.AddMap(state, merged(v0, [&](const Direction& d) { return d.LastH(v1, v2); })));
  if (g.cell == Cell::kLstm) {
    outputs.push_back(
        builder.AddMap(state, merged(v0, [&](const Direction& d) { return d.LastC(v1, v2); })));
  }
  return outputs;
}

constexpr OpDefinition kOps[] = {
    {"LSTM", InferRecurrent, ExpressRecurrent},
    {"GRU", InferRecurrent, ExpressRecurrent},
    {"RNN", InferRecurrent, ExpressRecurrent},
};

}  // namespace

std::span<const OpDefinition> RecurrentOps() { return kOps; }

}  // namespace hone::graph::ops
