#include "ir/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/core/random.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ir/workload_builder.h"

namespace hone::ir {
namespace {

Workload Parsed(const std::string& body) {
  absl::StatusOr<Workload> w = ParseWorkload("workload 1\n" + body);
  EXPECT_TRUE(w.ok()) << w.status();
  return w.ok() ? *w : Workload();
}

std::string Hash(const std::string& body) { return StructuralHash(Parsed(body)).ToHex(); }

constexpr char kMatmul[] =
    "x0: f32[8,16] input range(-1,1)\n"
    "x1: f32[16,4] constant\n"
    "s0: f32[8,4] output = sum[r0:16] (x0[i0, r0] * x1[r0, i1])\n";
constexpr char kScan[] =
    "x0: i64[5] input range(0,100)\n"
    "s0: i64[5] output scan 0 = select(i0 >= 1, s0[i0 - 1], 0) + x0[i0]\n";
constexpr char kNumbers[] =
    "x0: f16[3] immediate {0.5, -inf, nan}\n"
    "s0: f32[3] output = f32(x0[i0]) * 1e-20 + 0.1\n";

// Published in docs/formats/workload.md: a change makes every key of every log stale.
TEST(HashTest, GoldenVectors) {
  EXPECT_EQ(Hash(kMatmul), "c15d9da8dc07357f2e7bd10f087c2d41");
  EXPECT_EQ(Hash(kScan), "ae4824e25eea9a2230be2a8487e96279");
  EXPECT_EQ(Hash(kNumbers), "14bae7837418cc0cee27ca005b0a3a6a");
}

TEST(HashTest, IsTheHashOfTheCanonicalText) {
  EXPECT_EQ(StructuralHash(Parsed(kMatmul)), HashBytes("workload 1\n" + std::string(kMatmul)));
}

TEST(HashTest, NamesAndOrderDoNotMatter) {
  EXPECT_EQ(Hash(kMatmul),
            Hash("weights: f32[16,4] constant\n"
                 "image: f32[8,16] input range(-1,1)\n"
                 "unused: f32[3] constant\n"
                 "dead: f32[3] = unused[i0]\n"
                 "y: f32[8,4] output = sum[r0:16] (image[i0, r0] * weights[r0, i1])\n"));
}

TEST(HashTest, EverythingElseMatters) {
  const std::set<std::string> hashes = {
      Hash("x0: f32[4] input range(-1,1)\ns0: f32[4] output = x0[i0] + 1.0\n"),
      Hash("x0: f32[4] input range(0,1)\ns0: f32[4] output = x0[i0] + 1.0\n"),
      Hash("x0: f32[4] constant\ns0: f32[4] output = x0[i0] + 1.0\n"),
      Hash("x0: f32[5] input range(-1,1)\ns0: f32[4] output = x0[i0] + 1.0\n"),
      Hash("x0: f32[4] input range(-1,1)\ns0: f32[4] output = x0[i0] - 1.0\n"),
      Hash("x0: f32[4] input range(-1,1)\ns0: f32[4] output = 1.0 + x0[i0]\n"),
      Hash("x0: f32[4] input range(-1,1)\ns0: f32[4] output = x0[i0] + 2.0\n"),
      Hash("x0: f32[4] input range(-1,1)\ns0: f32[4] output = x0[3 - i0] + 1.0\n"),
      Hash("x0: f32[4] input range(-1,1)\ns0: f32[4] = x0[i0] + 1.0\ns1: f32[4] output = s0[i0]\n"),
      Hash("x0: f32[4] input range(-1,1)\ns0: f32[4] output = x0[i0] + 1.0\ns1: f32[4] output = "
           "s0[i0]\n"),
      Hash("x0: f32[4] input range(-1,1)\ns0: f32[4] output scan 0 = x0[i0] + 1.0\n")};
  EXPECT_EQ(hashes.size(), 11U);
}

TEST(HashTest, CanonicalFormIsAFixedPoint) {
  const Workload w = Canonicalise(Parsed(kScan)).workload;
  EXPECT_EQ(ToText(Canonicalise(w).workload), ToText(w));
  EXPECT_EQ(StructuralHash(w), StructuralHash(Parsed(kScan)));
}

/// The same random graph, its tensors and Stages added in a random order.
Workload RandomWorkload(Random graph, Random order) {
  constexpr int kInputs = 4;
  constexpr int kStages = 9;
  struct Node {
    std::vector<int> reads;
    bool output;
  };
  std::vector<Node> nodes(kInputs);
  for (int s = 0; s < kStages; ++s) {
    Node node{.reads = {}, .output = s == kStages - 1 || graph.Chance(0.3)};
    for (int k = 0; k < 3; ++k) {
      node.reads.push_back(static_cast<int>(graph.Below(static_cast<uint64_t>(kInputs + s))));
    }
    nodes.push_back(node);
  }
  std::vector<size_t> places(nodes.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = i;
  order.Shuffle(places);  // places[node]: its tensor id
  Workload w;
  w.tensors.resize(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool input = i < kInputs;
    Tensor& tensor = w.tensors[places[i]];
    tensor.kind = input ? TensorKind::kInput : TensorKind::kStage;
    tensor.shape = {static_cast<int64_t>(8)};
    if (input) tensor.range = {0, static_cast<double>(i + 1)};
    if (input) continue;
    Stage stage;
    stage.spatial = {8};
    stage.results = {static_cast<int>(places[i])};
    Expr sum = Const(DType::kF32, static_cast<double>(i));
    for (int read : nodes[i].reads) {
      sum = sum - Load(static_cast<int>(places[static_cast<size_t>(read)]), DType::kF32, {Var(0)});
    }
    stage.body = {sum};
    w.stages.push_back(stage);
  }
  order.Shuffle(w.stages);
  std::vector<int> outputs;
  for (size_t i = kInputs; i < nodes.size(); ++i) {
    if (nodes[i].output) outputs.push_back(static_cast<int>(places[i]));
  }
  return CanonicaliseFor(w, outputs).workload;
}

TEST(HashTest, OrderOfMakingDoesNotMatter) {
  constexpr uint64_t kSeed = 77;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  const Random random(kSeed);
  std::set<std::string> different;
  for (uint64_t g = 0; g < 200; ++g) {
    const Random graph = random.Fork(g);
    const Workload one = RandomWorkload(graph, random.Fork(1000 + g));
    const Workload two = RandomWorkload(graph, random.Fork(2000 + g));
    ASSERT_EQ(ToText(one), ToText(two));
    ASSERT_EQ(ToText(Canonicalise(one).workload), ToText(one)) << "canonical is a fixed point";
    ASSERT_TRUE(Verify(one).ok()) << Verify(one) << ToText(one);
    different.insert(StructuralHash(one).ToHex());
  }
  EXPECT_EQ(different.size(), 200U);
}

}  // namespace
}  // namespace hone::ir
