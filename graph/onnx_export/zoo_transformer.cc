#include <cmath>
#include <limits>

#include "fmt/format.h"

#include "graph/onnx_export/zoo_builders.h"
#include "graph/onnx_export/zoo_layers.h"

namespace hone::graph {
namespace {

struct Shape {
  int64_t tokens = 128;
  int64_t width = 768;
  int64_t heads = 12;
  int64_t layers = 12;
};

/// 0.5 x (1 + erf(x / sqrt 2)) in primitives, as exporters write it.
std::string Gelu(OnnxWriter& writer, const std::string& name, const std::string& x) {
  const std::string scaled = writer.Node("Div", name + ".scaled", {x, "sqrt_two"});
  const std::string erf = writer.Node("Erf", name + ".erf", {scaled});
  const std::string plus = writer.Node("Add", name + ".plus", {erf, "one"});
  const std::string product = writer.Node("Mul", name + ".product", {x, plus});
  return writer.Node("Mul", name, {product, "half"});
}

/// The approximation with tanh that GPT-2 uses (Hendrycks and Gimpel, 2016).
std::string GeluTanh(OnnxWriter& writer, const std::string& name, const std::string& x) {
  const std::string cube = writer.Node("Pow", name + ".cube", {x, "three"});
  const std::string small = writer.Node("Mul", name + ".small", {cube, "gelu_cubic"});
  const std::string sum = writer.Node("Add", name + ".sum", {x, small});
  const std::string inner = writer.Node("Mul", name + ".inner", {sum, "gelu_scale"});
  const std::string tanh = writer.Node("Tanh", name + ".tanh", {inner});
  const std::string plus = writer.Node("Add", name + ".plus", {tanh, "one"});
  const std::string halved = writer.Node("Mul", name + ".half", {x, "half"});
  return writer.Node("Mul", name, {halved, plus});
}

void AddConstants(OnnxWriter& writer, const Shape& shape) {
  const auto scalar = [&](const std::string& name, double value) {
    writer.Floats(name, {}, {static_cast<float>(value)});
  };
  scalar("half", 0.5);
  scalar("one", 1.0);
  scalar("sqrt_two", std::sqrt(2.0));
  scalar("three", 3.0);
  scalar("gelu_cubic", 0.044715);
  scalar("gelu_scale", 0.79788456080286536);  // sqrt(2 / pi)
  const int64_t head = shape.width / shape.heads;
  scalar("sqrt_head", std::sqrt(static_cast<double>(head)));
  writer.Integers("heads_shape", {4}, {1, shape.tokens, shape.heads, head});
  writer.Integers("tokens_shape", {3}, {1, shape.tokens, shape.width});
}

std::string Heads(OnnxWriter& writer, const std::string& name, const std::string& x, Ints order) {
  const std::string split = writer.Node("Reshape", name + ".heads", {x, "heads_shape"});
  return writer.Node("Transpose", name + ".order", {split}, {{"perm", std::move(order)}});
}

/// Scaled dot-product attention; `mask` is added to the scores, or empty.
std::string Attend(OnnxWriter& writer, const std::string& name, const std::string& query,
                   const std::string& key, const std::string& value, const std::string& mask) {
  const std::string q = Heads(writer, name + ".q", query, {0, 2, 1, 3});
  const std::string k = Heads(writer, name + ".k", key, {0, 2, 3, 1});
  const std::string v = Heads(writer, name + ".v", value, {0, 2, 1, 3});
  const std::string product = writer.Node("MatMul", name + ".product", {q, k});
  std::string scores = writer.Node("Div", name + ".scores", {product, "sqrt_head"});
  if (!mask.empty()) scores = writer.Node("Add", name + ".masked", {scores, mask});
  const std::string weights =
      writer.Node("Softmax", name + ".weights", {scores}, {{"axis", int64_t{-1}}});
  const std::string mixed = writer.Node("MatMul", name + ".mixed", {weights, v});
  const std::string order =
      writer.Node("Transpose", name + ".order", {mixed}, {{"perm", Ints{0, 2, 1, 3}}});
  return writer.Node("Reshape", name, {order, "tokens_shape"});
}

/// Self-attention with three projections and the output projection.
std::string SelfAttention(OnnxWriter& writer, const std::string& name, const std::string& x,
                          const Shape& shape, const std::string& mask) {
  const std::string q = Projection(writer, name + ".query", x, shape.width, shape.width);
  const std::string k = Projection(writer, name + ".key", x, shape.width, shape.width);
  const std::string v = Projection(writer, name + ".value", x, shape.width, shape.width);
  const std::string attended = Attend(writer, name + ".attend", q, k, v, mask);
  return Projection(writer, name + ".output", attended, shape.width, shape.width);
}

using Activation = std::string (*)(OnnxWriter&, const std::string&, const std::string&);

std::string FeedForward(OnnxWriter& writer, const std::string& name, const std::string& x,
                        const Shape& shape, Activation activation) {
  const int64_t hidden = 4 * shape.width;
  const std::string up = Projection(writer, name + ".up", x, shape.width, hidden, 1.41);
  return Projection(writer, name + ".down", activation(writer, name + ".act", up), hidden,
                    shape.width);
}

std::string Embedding(OnnxWriter& writer, const std::string& name, const std::string& ids,
                      int64_t rows, int64_t width) {
  return writer.Node("Gather", name,
                     {writer.Weight(name + ".weight", {rows, width}, -0.5, 0.5), ids},
                     {{"axis", int64_t{0}}});
}

void BuildBert(OnnxWriter& writer, const Shape& shape) {
  constexpr int64_t kVocabulary = 30522;
  constexpr double kEpsilon = 1e-12;
  const std::string ids = writer.Input("input_ids", ir::DType::kI64, {1, shape.tokens},
                                       {.low = 0, .high = kVocabulary});
  const std::string given =
      writer.Input("attention_mask", ir::DType::kI64, {1, shape.tokens}, {.low = 0, .high = 2});
  AddConstants(writer, shape);
  // Masked tokens get the lowest float added to their scores.
  writer.Integers("mask_axes", {2}, {1, 2});
  writer.Floats("lowest", {}, {std::numeric_limits<float>::lowest()});
  const std::string wide = writer.Node("Unsqueeze", "mask.wide", {given, "mask_axes"});
  const std::string kept = writer.Node("Cast", "mask.kept", {wide}, {{"to", int64_t{1}}});
  const std::string hidden = writer.Node("Sub", "mask.hidden", {"one", kept});
  const std::string mask = writer.Node("Mul", "mask", {hidden, "lowest"});

  const std::string words = Embedding(writer, "embed.word", ids, kVocabulary, shape.width);
  const std::string types = writer.Weight("embed.type", {1, 1, shape.width}, -0.5, 0.5);
  const std::string places =
      writer.Weight("embed.place", {1, shape.tokens, shape.width}, -0.5, 0.5);
  std::string x = writer.Node("Add", "embed.typed", {words, types});
  x = writer.Node("Add", "embed.placed", {x, places});
  x = LayerNorm(writer, "embed.norm", x, shape.width, kEpsilon);
  for (int64_t i = 0; i < shape.layers; ++i) {
    const std::string name = fmt::format("layer{}", i);
    const bool last = i + 1 == shape.layers;
    const std::string attended = SelfAttention(writer, name + ".attention", x, shape, mask);
    x = writer.Node("Add", name + ".add1", {attended, x});
    x = LayerNorm(writer, name + ".norm1", x, shape.width, kEpsilon);
    const std::string fed = FeedForward(writer, name + ".feed", x, shape, Gelu);
    const std::string sum = writer.Node("Add", name + ".add2", {fed, x});
    x = LayerNorm(writer, last ? "last_hidden_state" : name + ".norm2", sum, shape.width, kEpsilon);
  }
  writer.Integers("first_token", {}, {0});
  const std::string first =
      writer.Node("Gather", "first", {x, "first_token"}, {{"axis", int64_t{1}}});
  writer.Node("Tanh", "pooler_output", {Linear(writer, "pooler", first, shape.width, shape.width)});
  writer.Output("last_hidden_state", ir::DType::kF32, {1, shape.tokens, shape.width});
  writer.Output("pooler_output", ir::DType::kF32, {1, shape.width});
}

/// 0 where a token may look, the lowest float elsewhere.
std::string CausalMask(OnnxWriter& writer, int64_t tokens) {
  std::vector<float> values(static_cast<size_t>(tokens * tokens), 0.0F);
  for (int64_t row = 0; row < tokens; ++row) {
    for (int64_t column = row + 1; column < tokens; ++column) {
      values[static_cast<size_t>(row * tokens + column)] = std::numeric_limits<float>::lowest();
    }
  }
  return writer.Floats("causal_mask", {1, 1, tokens, tokens}, std::move(values));
}

}  // namespace

void BuildBertBase(OnnxWriter& writer) { BuildBert(writer, {}); }

void BuildBertSmall(OnnxWriter& writer) {
  BuildBert(writer, {.tokens = 128, .width = 256, .heads = 4, .layers = 4});
}

void BuildGpt2Small(OnnxWriter& writer) {
  constexpr int64_t kVocabulary = 50257;
  constexpr double kEpsilon = 1e-5;
  const Shape shape;
  const std::string ids = writer.Input("input_ids", ir::DType::kI64, {1, shape.tokens},
                                       {.low = 0, .high = kVocabulary});
  AddConstants(writer, shape);
  const std::string mask = CausalMask(writer, shape.tokens);
  const std::string words = Embedding(writer, "embed.word", ids, kVocabulary, shape.width);
  const std::string places =
      writer.Weight("embed.place", {1, shape.tokens, shape.width}, -0.5, 0.5);
  std::string x = writer.Node("Add", "embed", {words, places});
  for (int64_t i = 0; i < shape.layers; ++i) {
    const std::string name = fmt::format("layer{}", i);
    const std::string before = LayerNorm(writer, name + ".norm1", x, shape.width, kEpsilon);
    // One product for query, key and value.
    const std::string merged =
        Projection(writer, name + ".qkv", before, shape.width, 3 * shape.width);
    const std::vector<std::string> parts = writer.Nodes(
        "Split", {name + ".q", name + ".k", name + ".v"}, {merged}, {{"axis", int64_t{2}}});
    const std::string mixed = Attend(writer, name + ".attend", parts[0], parts[1], parts[2], mask);
    const std::string attended =
        Projection(writer, name + ".attention", mixed, shape.width, shape.width);
    x = writer.Node("Add", name + ".add1", {attended, x});
    const std::string middle = LayerNorm(writer, name + ".norm2", x, shape.width, kEpsilon);
    const std::string fed = FeedForward(writer, name + ".feed", middle, shape, GeluTanh);
    x = writer.Node("Add", name + ".add2", {x, fed});
  }
  x = LayerNorm(writer, "norm", x, shape.width, kEpsilon);
  const std::string table =
      writer.Node("Transpose", "unembed", {"embed.word.weight"}, {{"perm", Ints{1, 0}}});
  writer.Output(writer.Node("MatMul", "logits", {x, table}), ir::DType::kF32,
                {1, shape.tokens, kVocabulary});
}

void BuildVitSmall(OnnxWriter& writer) {
  constexpr int64_t kPatch = 16, kPatches = 14 * 14;
  constexpr double kEpsilon = 1e-6;
  const Shape shape = {.tokens = kPatches + 1, .width = 384, .heads = 6, .layers = 12};
  std::string x = writer.Input("input", ir::DType::kF32, {1, 3, 224, 224});
  AddConstants(writer, shape);
  x = Convolution(
      writer, "patch", x,
      {.in = 3, .out = shape.width, .kernel = kPatch, .stride = kPatch, .bias = true, .gain = 1.0});
  writer.Integers("patches_shape", {3}, {1, shape.width, kPatches});
  x = writer.Node("Reshape", "patch.flat", {x, "patches_shape"});
  x = writer.Node("Transpose", "patch.tokens", {x}, {{"perm", Ints{0, 2, 1}}});
  const std::string token = writer.Weight("class_token", {1, 1, shape.width}, -0.5, 0.5);
  x = writer.Node("Concat", "tokens", {token, x}, {{"axis", int64_t{1}}});
  x = writer.Node("Add", "placed",
                  {x, writer.Weight("place", {1, shape.tokens, shape.width}, -0.5, 0.5)});
  for (int64_t i = 0; i < shape.layers; ++i) {
    const std::string name = fmt::format("layer{}", i);
    const std::string before = LayerNorm(writer, name + ".norm1", x, shape.width, kEpsilon);
    const std::string attended = SelfAttention(writer, name + ".attention", before, shape, "");
    x = writer.Node("Add", name + ".add1", {attended, x});
    const std::string middle = LayerNorm(writer, name + ".norm2", x, shape.width, kEpsilon);
    const std::string fed = FeedForward(writer, name + ".feed", middle, shape, Gelu);
    x = writer.Node("Add", name + ".add2", {fed, x});
  }
  x = LayerNorm(writer, "norm", x, shape.width, kEpsilon);
  writer.Integers("first_token", {}, {0});
  x = writer.Node("Gather", "first", {x, "first_token"}, {{"axis", int64_t{1}}});
  Linear(writer, "output", x, shape.width, 1000);
  writer.Output("output", ir::DType::kF32, {1, 1000});
}

}  // namespace hone::graph
