#include <algorithm>
#include <cmath>

#include "base/core/random.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph::testing {
namespace {

/// Draws nodes over values drawn before; recent ones more often, so that chains form.
class RandomGraphMaker {
 public:
  explicit RandomGraphMaker(uint64_t seed) : made_(seed + 1000), random_(seed) {}

  Graph Make(int nodes) {
    const ValueId integers = made_.Input({4, 3}, ir::DType::kI64);
    made_.graph.values[integers].range = {-9, 10};
    pool_ = {made_.Input({1, 4, 6, 5}), made_.Input({3, 4, 2}, ir::DType::kF16), integers,
             made_.Input({2, 6, 8})};
    while (static_cast<int>(made_.graph.nodes.size()) < nodes) pool_.push_back(Draw(Pick()));
    const auto readers = made_.graph.Readers();
    int outputs = 0;
    for (size_t v = 0; v < readers.size(); ++v) {
      const bool made = made_.graph.values[v].producer >= 0;
      if (!made || (!readers[v].empty() && !random_.Chance(0.05))) continue;
      made_.Output(static_cast<ValueId>(v), "output" + std::to_string(outputs++));
    }
    return std::move(made_.graph);
  }

 private:
  using Shape = std::vector<int64_t>;

  // Not the large ones: the interpreter is slow.
  ValueId Pick() {
    constexpr int64_t kLargest = 600;
    for (int attempt = 0; attempt < 20; ++attempt) {
      const ValueId picked = PickAny();
      const TensorType& type = made_.graph.values[picked].type;
      if (type.NumElements() <= kLargest && !type.shape.empty()) return picked;
    }
    return pool_[0];
  }

  ValueId PickAny() {
    if (random_.Chance(0.6)) return pool_.back();
    return random_.Pick(pool_);
  }

  ir::DType DTypeOf(ValueId x) const { return made_.graph.values[x].type.dtype; }

  ValueId Draw(ValueId x) {
    const Shape shape = made_.Shape(x);
    if (DTypeOf(x) != ir::DType::kF32) return DrawExact(x);
    const int64_t rank = static_cast<int64_t>(shape.size());
    if (rank == 4 && random_.Chance(0.5)) return DrawImage(x);
    if (rank >= 2 && random_.Chance(0.3)) return DrawMatrix(x);
    switch (random_.Below(16)) {
      case 0: return made_.Relu(x);
      case 1: return made_.Unary(random_.Pick<std::string>({"tanh", "sigmoid", "neg", "abs"}), x);
      case 2:
        return made_.Binary(random_.Pick<std::string>({"add", "mul", "sub", "max"}), x, Partner(x));
      case 3:
        return made_.Binary(random_.Pick<std::string>({"add", "mul"}), x,
                            made_.Constant(Broadcast(shape)));
      case 4: return made_.Transpose(x, Permutation(rank));
      case 5: return made_.Reshape(x, OtherShape(shape));
      case 6: return Slice(x);
      case 7:
        return made_.Op("Concat", {x, Partner(x)},
                        {{"axis", static_cast<int64_t>(random_.Below(shape.size()))}});
      default: return Reduce(x);
    }
  }

  // Halves and integers, whose results have no tolerance: nothing that rounds.
  ValueId DrawExact(ValueId x) {
    const Shape shape = made_.Shape(x);
    switch (random_.Below(7)) {
      case 0: return made_.Unary(random_.Pick<std::string>({"neg", "abs", "sign"}), x);
      case 1: return made_.Binary(random_.Pick<std::string>({"max", "min"}), x, Partner(x));
      case 2: {
        const double power = std::ldexp(1.0, static_cast<int>(random_.Between(0, 3)));
        const ValueId scalar = made_.graph.AddConstant(MakeConstant(DTypeOf(x), {}, {power}));
        const bool integer = ir::IsInteger(DTypeOf(x));
        return made_.Binary(integer ? random_.Pick<std::string>({"add", "sub", "mul", "div"})
                                    : random_.Pick<std::string>({"mul", "div"}),
                            x, scalar);
      }
      case 3: return made_.Transpose(x, Permutation(static_cast<int64_t>(shape.size())));
      case 4: return made_.Reshape(x, OtherShape(shape));
      case 5: return Slice(x);
      default: return made_.Op("Concat", {x, Partner(x)}, {{"axis", int64_t{0}}});
    }
  }

  ValueId DrawImage(ValueId x) {
    const Shape& shape = made_.Shape(x);
    const int64_t kernel = std::min(shape[2], shape[3]) >= 3 ? random_.Pick<int64_t>({1, 3}) : 1;
    switch (random_.Below(5)) {
      case 0: return made_.BatchNorm(x);
      case 1: return made_.BatchNorm(made_.Conv(x, random_.Between(2, 5), kernel, 1, kernel / 2));
      case 2: return made_.Conv(x, shape[1], kernel, 1, kernel / 2, shape[1]);
      case 3:
        return made_.Op("Pool", {x},
                        {{"kind", random_.Pick<std::string>({"max", "average"})},
                         {"kernel", Shape{kernel, kernel}},
                         {"strides", Shape{1, 1}},
                         {"dilations", Shape{1, 1}},
                         {"pads", Shape{0, kernel / 2, 0, kernel / 2}},
                         {"layout", std::string("nchw")}});
      default:
        return made_.Conv(x, random_.Between(2, 5), kernel, random_.Between(1, 2), kernel / 2);
    }
  }

  ValueId UpSample(ValueId x) {
    const ValueId weights = made_.Constant({made_.Shape(x)[1], 3, 2, 2});
    return made_.Op("ConvTranspose", {x, weights, made_.Constant({3})},
                    {{"strides", Shape{2, 2}}, {"layout", std::string("nchw")}});
  }

  ValueId Resize(ValueId x) {
    Shape sizes = made_.Shape(x);
    sizes[3] *= 2;
    return made_.Op("Resize", {x},
                    {{"sizes", sizes},
                     {"scales", std::vector<double>{1, 1, 1, 2}},
                     {"mode", random_.Pick<std::string>({"nearest", "linear"})},
                     {"coordinate", std::string("half_pixel")}});
  }

  ValueId DrawMatrix(ValueId x) {
    const size_t rank = made_.Shape(x).size();
    switch (random_.Below(rank == 3 && made_.Shape(x)[2] % 2 == 0 ? 6 : 5)) {
      case 0: return made_.LayerNorm(x);
      case 3: return made_.Binary("add", made_.Linear(x, 4), made_.Linear(x, 4));
      case 5: return Attention(x);
      case 1:
        return made_.Op("Softmax", {x},
                        {{"axis", static_cast<int64_t>(random_.Below(made_.Shape(x).size()))}});
      case 2: return made_.Op("MatMul", {x, made_.Transpose(x, Swapped(made_.Shape(x).size()))});
      default: return made_.Linear(x, random_.Between(2, 9));
    }
  }

  // Two heads, written as exporters do.
  ValueId Attention(ValueId x) {
    const Shape shape = made_.Shape(x);
    const int64_t width = shape[2] / 2;
    const auto heads = [&](const Shape& perm) {
      return made_.Transpose(
          made_.Reshape(made_.Linear(x, shape[2]), {shape[0], shape[1], 2, width}), perm);
    };
    const ValueId q = heads({0, 2, 1, 3});
    const ValueId k = heads({0, 2, 3, 1});
    const ValueId v = heads({0, 2, 1, 3});
    const ValueId scores = made_.Binary("div", made_.Op("MatMul", {q, k}), made_.Scalar(4));
    const ValueId soft = made_.Op("Softmax", {scores}, {{"axis", int64_t{3}}});
    return made_.Reshape(made_.Transpose(made_.Op("MatMul", {soft, v}), {0, 2, 1, 3}), shape);
  }

  // Another value of the same type, or x itself.
  ValueId Partner(ValueId x) {
    std::vector<ValueId> same;
    for (ValueId value : pool_) {
      if (made_.graph.values[value].type == made_.graph.values[x].type) same.push_back(value);
    }
    return same.empty() ? x : random_.Pick(same);
  }

  Shape Broadcast(Shape shape) {
    for (int64_t& extent : shape) extent = random_.Chance(0.5) ? extent : 1;
    return shape;
  }

  Shape Permutation(int64_t rank) {
    Shape perm;
    for (int64_t k = 0; k < rank; ++k) perm.push_back(k);
    random_.Shuffle(perm);
    return perm;
  }

  static Shape Swapped(size_t rank) {
    Shape perm;
    for (size_t k = 0; k < rank; ++k) perm.push_back(static_cast<int64_t>(k));
    std::swap(perm[rank - 1], perm[rank - 2]);
    return perm;
  }

  Shape OtherShape(const Shape& shape) {
    Shape other = shape;
    if (other.size() >= 2 && random_.Chance(0.5)) {
      const size_t k = random_.Below(other.size() - 1);
      other[k] *= other[k + 1];
      other.erase(other.begin() + static_cast<std::ptrdiff_t>(k) + 1);
      return other;
    }
    if (other.size() >= 5) return other;
    const size_t k = random_.Below(other.size());
    const int64_t part = other[k] % 2 == 0 ? 2 : 1;
    other[k] /= part;
    other.insert(other.begin() + static_cast<std::ptrdiff_t>(k), part);
    return other;
  }

  ValueId Slice(ValueId x) {
    Shape starts;
    Shape sizes;
    for (int64_t extent : made_.Shape(x)) {
      const int64_t start = random_.Chance(0.7) ? 0 : random_.Between(0, extent - 1);
      starts.push_back(start);
      sizes.push_back(random_.Chance(0.7) ? extent - start : random_.Between(1, extent - start));
    }
    return made_.Op("Slice", {x},
                    {{"starts", starts}, {"steps", Shape(starts.size(), 1)}, {"sizes", sizes}});
  }

  ValueId Reduce(ValueId x) {
    Shape axes;
    for (size_t k = 0; k < made_.Shape(x).size(); ++k) {
      if (random_.Chance(0.4)) axes.push_back(static_cast<int64_t>(k));
    }
    if (axes.empty() || axes.size() == made_.Shape(x).size()) axes = {0};
    const int64_t keepdims = axes.size() == made_.Shape(x).size() ? 1 : random_.Between(0, 1);
    return made_.Op("Reduce", {x},
                    {{"fn", random_.Pick<std::string>({"sum", "mean", "max"})},
                     {"axes", axes},
                     {"keepdims", keepdims}});
  }

  TestGraph made_;
  Random random_;
  std::vector<ValueId> pool_;
};

}  // namespace

Graph RandomGraph(uint64_t seed, int nodes) { return RandomGraphMaker(seed).Make(nodes); }

}  // namespace hone::graph::testing
