#include <cmath>
#include <cstring>

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "ir/loop_interpreter.h"
#include "ir/tensor_buffer.h"
#include "tests/codegen/kernel.h"

// Loop nests made at random (kinds of loops, index arithmetic, guards, masks, combiners, dtypes)
// against the interpreter of loop nests. Inputs end at an unreadable page.
namespace hone::codegen {
namespace {

using ir::BinaryOp;
using ir::Combiner;
using ir::DType;
using ir::Expr;
using ir::LoopKind;
using ir::Stmt;

constexpr int kNestsPerSeed = 60;
constexpr int64_t kMostCopies = 100;  // of a statement, by unrolling and lanes

class NestGenerator {
 public:
  explicit NestGenerator(unsigned seed) : random_(seed) {}

  NestBuilder Make() {
    dtype_ = PickFrom<DType>({DType::kF32, DType::kF32, DType::kI32, DType::kU8, DType::kI64,
                              DType::kBool, DType::kI16, DType::kF64, DType::kF16, DType::kBF16});
    MakeLoops();
    const bool tile = Chance(3);
    combiner_ =
        Chance(2) ? Combiner::kNone
                  : PickFrom<Combiner>({Combiner::kSum, Combiner::kMax, Combiner::kMin,
                                        Combiner::kSum, Combiner::kArgMax, Combiner::kArgMinLast});
    if (ir::IsBool(dtype_) && combiner_ == Combiner::kSum) combiner_ = Combiner::kMax;
    Stmt body = tile ? TileBody() : PlainBody();
    for (size_t i = tile ? tile_from_ : loops_.size(); i-- > 0;) {
      body = ir::For(loops_[i].var, loops_[i].extent, loops_[i].kind, body);
    }
    b_.AddPhase("phase", body, parallel_extent_);
    return std::move(b_);
  }
  int64_t parallel_extent() const { return parallel_extent_; }

 private:
  struct Loop {
    int var;
    int64_t extent;
    LoopKind kind;
    bool reduce;
  };
  struct Ranged {
    Expr expr;
    int64_t low, high;
  };

  int64_t Int(int64_t low, int64_t high) { return random_.Between(low, high); }
  bool Chance(int of) { return Int(1, of) == 1; }
  template <typename T>
  T PickFrom(std::vector<T> from) {
    return random_.Pick(from);
  }

  void MakeLoops() {
    const int64_t depth = Int(1, 4);
    bool vector = false;
    int64_t copies = 1;
    for (int64_t i = 0; i < depth; ++i) {
      Loop loop{b_.NewVar(), Int(1, 7), LoopKind::kSerial, false};
      const int64_t kind = Int(0, 5);
      if (kind <= 1) loop.kind = LoopKind::kUnrolled;
      if (kind >= 4 && (!vector || Chance(4))) {
        loop.kind = LoopKind::kVector;
        loop.extent = PickFrom<int64_t>({2, 3, 4, 7, 8, 8, 13, 16, 16, 24, 33});
        vector = true;
      }
      // Keeps compiling quick.
      if (loop.kind != LoopKind::kSerial) copies *= loop.extent;
      if (copies > kMostCopies) loop.kind = LoopKind::kSerial;
      if (i == 0 && Chance(2)) {
        loop.kind = LoopKind::kParallel;
        parallel_extent_ = loop.extent;
      }
      loop.reduce = i > 0 && Chance(3);
      loops_.push_back(loop);
    }
  }

  /// A random integer expression over the loops.
  Ranged Index(int depth) {
    const Loop& loop = loops_[static_cast<size_t>(Int(0, static_cast<int64_t>(loops_.size()) - 1))];
    if (depth == 0) return {ir::Var(loop.var), 0, loop.extent - 1};
    Ranged a = Index(depth - 1);
    const int64_t c = Int(1, 9);
    switch (Int(0, 9)) {
      case 0:
        return {ir::FloorDiv(a.expr + Int(-3, 3), c), (a.low - 3) / c - 1, (a.high + 3) / c + 1};
      case 1: return {ir::FloorMod(a.expr + Int(-9, 9), c), 0, c - 1};
      case 2: return {a.expr * -1, -a.high, -a.low};
      case 3:
        return {ir::Max(a.expr, ir::Int(2)), std::max<int64_t>(a.low, 2),
                std::max<int64_t>(a.high, 2)};
      case 4: {
        Ranged other = Index(0);
        return {ir::Select(ir::Lt(a.expr, other.expr), a.expr + 1, other.expr),
                std::min(a.low + 1, other.low), std::max(a.high + 1, other.high)};
      }
      case 5: return {ir::Cast(DType::kI64, ir::Cast(DType::kI32, a.expr)), a.low, a.high};
      default: {
        Ranged other = Index(depth - 1);
        const int64_t k = Int(1, 5);
        return {a.expr + other.expr * k + c, a.low + other.low * k + c,
                a.high + other.high * k + c};
      }
    }
  }

  /// A load of an input made to fit, always inside.
  Expr InputLoad(DType dtype, int depth) {
    Ranged index = Index(static_cast<int>(Int(0, depth)));
    const int64_t slack = Chance(2) ? 0 : Int(1, 40);
    const int id = b_.Input("x" + std::to_string(b_.nest.buffers.size()), dtype,
                            index.high - index.low + 1 + slack);
    return ir::Load(id, dtype, {index.expr - index.low});
  }

  Expr Condition() {
    Ranged a = Index(1);
    const Ranged b = Index(0);
    switch (Int(0, 4)) {
      case 0: return ir::InRange(a.expr - 2, Int(1, 20));
      case 1: return ir::Binary(BinaryOp::kNe, a.expr, b.expr);
      case 2:
        return ir::Binary(BinaryOp::kOr, ir::Lt(a.expr, ir::Int(4)),
                          ir::Binary(BinaryOp::kEq, b.expr, ir::Int(1)));
      case 3: return ir::Unary(ir::UnaryOp::kNot, ir::Ge(a.expr, ir::Int(Int(0, 20))));
      default: return ir::Lt(a.expr, ir::Int(Int(0, 30)));
    }
  }

  Expr Guarded(DType dtype) {
    // The index leaves the buffer exactly where the condition fails.
    Ranged index = Index(2);
    const int64_t elements = Int(1, std::max<int64_t>(1, index.high + 1));
    const int id = b_.Input("g" + std::to_string(b_.nest.buffers.size()), dtype, elements);
    Expr load = ir::Load(id, dtype, {index.expr});
    Expr other = Chance(2) ? ir::Const(dtype, 0) : InputLoad(dtype, 1);
    if (Chance(2)) return ir::Select(ir::InRange(index.expr, elements), load, other);
    return ir::Select(ir::Unary(ir::UnaryOp::kNot, ir::InRange(index.expr, elements)), other, load);
  }

  Expr Gathered(DType dtype) {
    const int64_t rows = Int(1, 9);
    Expr row = ir::FloorMod(ir::Cast(DType::kI64, InputLoad(DType::kI32, 1)), rows);
    Ranged column = Index(0);
    const int64_t width = column.high + 1;
    const int id = b_.Input("t" + std::to_string(b_.nest.buffers.size()), dtype, rows * width);
    return ir::Load(id, dtype, {row * width + column.expr});
  }

  Expr FromTable(DType dtype) {
    Ranged index = Index(1);
    std::vector<double> values;
    for (int64_t i = index.low; i <= index.high; ++i)
      values.push_back(static_cast<double>(Int(0, 1)));
    const int id = b_.Table("table" + std::to_string(b_.nest.buffers.size()), dtype, values);
    return ir::Load(id, dtype, {index.expr - index.low});
  }

  Expr Value(DType dtype, int depth) {
    if (depth == 0) {
      switch (Int(0, 7)) {
        case 0: return Guarded(dtype);
        case 1: return Gathered(dtype);
        case 2: return ir::Const(dtype, static_cast<double>(Int(0, 3)));
        case 3: return ir::Cast(dtype, Index(1).expr);
        case 4: return FromTable(dtype);
        default: return InputLoad(dtype, 2);
      }
    }
    if (ir::IsBool(dtype)) {
      if (Chance(3)) return ir::Binary(BinaryOp::kLe, Value(DType::kI32, 0), Value(DType::kI32, 0));
      return ir::Binary(
          PickFrom<BinaryOp>({BinaryOp::kAnd, BinaryOp::kOr, BinaryOp::kXor, BinaryOp::kEq}),
          Value(dtype, depth - 1), Value(dtype, depth - 1));
    }
    if (Chance(6)) return ir::Select(Condition(), Value(dtype, depth - 1), Value(dtype, depth - 1));
    if (Chance(6))
      return ir::Cast(dtype,
                      Value(PickFrom<DType>({DType::kI32, DType::kU8, DType::kBool}), depth - 1));
    std::vector<BinaryOp> ops = {BinaryOp::kAdd, BinaryOp::kSub, BinaryOp::kMul, BinaryOp::kMin,
                                 BinaryOp::kMax};
    if (ir::IsInteger(dtype)) {
      ops.insert(ops.end(), {BinaryOp::kDiv, BinaryOp::kMod, BinaryOp::kTruncDiv,
                             BinaryOp::kTruncMod, BinaryOp::kShr, BinaryOp::kShl, BinaryOp::kXor});
    }
    return ir::Binary(PickFrom(ops), Value(dtype, depth - 1), Value(dtype, depth - 1));
  }

  /// Row-major over the loops that are not reduced, in a random order of digits.
  Expr OutputIndex(const std::vector<size_t>& over, int64_t* elements) {
    std::vector<size_t> order = over;
    random_.Shuffle(order);
    Expr index = ir::Int(0);
    int64_t size = 1;
    for (const size_t i : order) {
      index = index + ir::Var(loops_[i].var) * size;
      size *= loops_[i].extent;
    }
    *elements = size;
    return index;
  }

  std::vector<size_t> Spatial(size_t from, bool all) {
    std::vector<size_t> result;
    for (size_t i = from; i < loops_.size(); ++i) {
      if (all || !loops_[i].reduce) result.push_back(i);
    }
    return result;
  }

  Stmt StoreValue(Expr index, int first, int second, Combiner combiner) {
    Expr value = Value(dtype_, static_cast<int>(Int(0, 2)));
    if (!ir::IsArg(combiner)) return ir::Store(first, index, value, combiner);
    return ir::StoreTuple({first, second}, index, {value, Index(1).expr}, combiner);
  }

  Stmt PlainBody() {
    int64_t elements = 0;
    Expr index = OutputIndex(Spatial(0, combiner_ == Combiner::kNone), &elements);
    const int y = b_.Output("y", dtype_, elements);
    const int i = ir::IsArg(combiner_) ? b_.Output("i", DType::kI64, elements) : -1;
    Stmt store = StoreValue(index, y, i, combiner_);
    return Chance(2) ? ir::If(Condition(), store) : store;
  }

  /// Outer loops; then a register tile: fill, accumulate over inner loops, store.
  Stmt TileBody() {
    if (combiner_ == Combiner::kNone || ir::IsArg(combiner_)) combiner_ = Combiner::kMax;
    tile_from_ = static_cast<size_t>(Int(0, static_cast<int64_t>(loops_.size())));
    std::vector<size_t> tile;
    for (size_t i = tile_from_; i < loops_.size(); ++i) {
      Loop& loop = loops_[i];
      if (loop.kind == LoopKind::kParallel) loop.reduce = false;
      if (!loop.reduce) {
        if (loop.kind != LoopKind::kVector) {
          loop.kind = LoopKind::kUnrolled;
          loop.extent = std::min<int64_t>(loop.extent, 3);
        }
        tile.push_back(i);
      }
    }
    if (tile_from_ == 0) parallel_extent_ = 1;
    int64_t size = 0;
    Expr local = OutputIndex(tile, &size);
    const int acc = b_.Register("acc", dtype_, size);
    Stmt inner = ir::Store(acc, local, Value(dtype_, 1), combiner_);
    if (Chance(3)) inner = ir::If(Condition(), inner);
    for (size_t i = loops_.size(); i-- > tile_from_;) {
      inner = ir::For(loops_[i].var, loops_[i].extent, loops_[i].kind, inner);
    }
    // Only loops that are not reduced appear in what is stored.
    std::vector<size_t> spatial;
    for (size_t i = 0; i < tile_from_; ++i) spatial.push_back(i);
    spatial.insert(spatial.end(), tile.begin(), tile.end());
    int64_t elements = 0;
    Expr index = OutputIndex(spatial, &elements);
    const int y = b_.Output("y", dtype_, elements);
    Stmt store = ir::Store(y, index, ir::Load(acc, dtype_, {local}));
    for (size_t t = tile.size(); t-- > 0;) {
      store = ir::For(loops_[tile[t]].var, loops_[tile[t]].extent, loops_[tile[t]].kind, store);
    }
    return ir::Block(
        {ir::Fill(acc, size, ir::Const(dtype_, static_cast<double>(Int(0, 1)))), inner, store});
  }

  Random random_;
  NestBuilder b_;
  std::vector<Loop> loops_;
  size_t tile_from_ = 0;
  int64_t parallel_extent_ = 1;
  DType dtype_ = DType::kF32;
  Combiner combiner_ = Combiner::kNone;
};

bool Near(DType dtype, double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return true;
  if (!ir::IsFloat(dtype)) return false;
  const double relative = dtype == DType::kF64   ? 1e-12
                          : dtype == DType::kF32 ? 1e-4
                          : dtype == DType::kF16 ? 1e-2
                                                 : 6e-2;
  return std::abs(a - b) <= relative * (1 + std::abs(b));
}

void FillRandom(DType dtype, int64_t elements, unsigned seed, uint8_t* memory) {
  Random random(seed);
  for (int64_t i = 0; i < elements; ++i) {
    const double value = ir::IsFloat(dtype)  ? static_cast<double>(random.Between(-8, 8)) / 4
                         : ir::IsBool(dtype) ? static_cast<double>(random.Below(2))
                                             : static_cast<double>(random.Between(-5, 100));
    ir::WriteElement(dtype, memory, i, ir::ElementOf(dtype, value));
  }
}

class RandomNestTest : public testing::TestWithParam<unsigned> {};

TEST_P(RandomNestTest, CodeEqualsTheInterpreter) {
  for (int n = 0; n < kNestsPerSeed; ++n) {
    const unsigned seed = GetParam() * 1000 + static_cast<unsigned>(n);
    NestGenerator generator(seed);
    const NestBuilder builder = generator.Make();
    const ir::LoopNest& nest = builder.nest;
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + ToText(nest));
    const int64_t extent = nest.phases[0].parallel_extent;
    for (const ir::Target& target : RunnableTargets()) {
      SCOPED_TRACE(target.text);
      const Kernel kernel(nest, target);
      if (HasFailure()) return;
      std::vector<std::unique_ptr<GuardedMemory>> memory;
      std::vector<void*> actual;
      std::vector<std::vector<uint8_t>> copies;
      std::vector<std::span<uint8_t>> expected;
      for (const ir::Buffer& buffer : nest.buffers) {
        if (buffer.scope != ir::Scope::kArgument) continue;
        const int64_t bytes = buffer.elements * ir::SizeOf(buffer.dtype);
        const auto side = seed % 2 == 0 ? GuardedMemory::Side::kEnd : GuardedMemory::Side::kStart;
        memory.push_back(std::make_unique<GuardedMemory>(bytes, side));
        actual.push_back(memory.back()->as<void>());
        FillRandom(buffer.dtype, buffer.elements, seed + static_cast<unsigned>(memory.size()),
                   memory.back()->as<uint8_t>());
        copies.emplace_back(memory.back()->as<uint8_t>(), memory.back()->as<uint8_t>() + bytes);
      }
      for (auto& copy : copies) expected.emplace_back(copy);
      const absl::Status reference =
          ir::RunLoopNest(nest, expected, {.outputs_start_unset = false, .find_races = true});
      ASSERT_TRUE(reference.ok()) << reference;
      // Two parts, as two threads would.
      ASSERT_EQ(kernel.Run("phase", actual, 0, extent / 2), 0);
      ASSERT_EQ(kernel.Run("phase", actual, extent / 2, extent), 0);
      for (const ir::Buffer& buffer : nest.buffers) {
        if (buffer.scope != ir::Scope::kArgument) continue;
        const auto k = static_cast<size_t>(buffer.argument);
        for (int64_t i = 0; i < buffer.elements; ++i) {
          const double want =
              ir::ToDouble(buffer.dtype, ir::ReadElement(buffer.dtype, expected[k].data(), i));
          const double got = ir::ToDouble(
              buffer.dtype, ir::ReadElement(buffer.dtype, static_cast<uint8_t*>(actual[k]), i));
          ASSERT_TRUE(Near(buffer.dtype, got, want))
              << buffer.name << "[" << i << "] = " << got << ", not " << want;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomNestTest, testing::Range(1U, 8U));

}  // namespace
}  // namespace hone::codegen
