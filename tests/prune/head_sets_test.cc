// Heads that are taken out of a model, in each of the forms in which files have an attention.

#include "graph/onnx_prune/head_sets.h"

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/prune/taken_out.h"
#include "tests/quantise/small_network.h"
#include "tests/test_paths.h"

namespace hone::graph::onnx_prune {
namespace {

using client::testing::AddWeights;
using ::testing::ElementsAre;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

/// An attention of 4 heads of 3 over 5 places of 8 channels, written out node by node.
class HeadSetsTest : public TakenOutTest {
 protected:
  void Read() {
    ReadSource();
    const auto graph = ImportBytes(model_.Bytes());
    ASSERT_TRUE(graph.ok()) << graph.status();
    ChannelSets found = FindHeadSets(source_, *graph);
    sets_ = std::move(found.sets);
    why_not_ = std::move(found.why_not);
  }

  void MatMul(const std::string& name, const std::string& from, int64_t terms, int64_t columns) {
    AddWeights(model_, name + ".w", {terms, columns}, ++seed_);
    AddWeights(model_, name + ".b", {columns}, ++seed_);
    model_.Node("MatMul", {from, name + ".w"}, {name + ".m"}).set_name(name);
    model_.Node("Add", {name + ".b", name + ".m"}, {name});
  }
  void Gemm(const std::string& name, const std::string& from, int64_t terms, int64_t columns) {
    AddWeights(model_, name + ".w", {terms, columns}, ++seed_);
    AddWeights(model_, name + ".b", {columns}, ++seed_);
    model_.Node("Gemm", {from, name + ".w", name + ".b"}, {name}).set_name(name);
  }
  std::string Reshape(const std::string& from, const std::vector<int64_t>& shape,
                      const std::string& to) {
    model_.Ints(to + ".shape", shape);
    model_.Node("Reshape", {from, to + ".shape"}, {to});
    return to;
  }
  std::string Transpose(const std::string& from, const std::vector<int64_t>& perm,
                        const std::string& to) {
    SetInts(model_.Node("Transpose", {from}, {to}), "perm", perm);
    return to;
  }
  /// softmax(q kᵀ) v of [2, 4, 5, 3] each, back to [2, 5, 12].
  std::string Mixed(const std::string& q, const std::string& k, const std::string& v,
                    const std::vector<int64_t>& joined = {2, 5, 12}) {
    Transpose(k, {0, 1, 3, 2}, "kt");
    model_.Node("MatMul", {q, "kt"}, {"scores"});
    model_.Input("mask", {"2", "1", "1", "5"});
    model_.Node("Add", {"scores", "mask"}, {"masked"});
    model_.Node("Softmax", {"masked"}, {"shares"});
    model_.Node("MatMul", {"shares", v}, {"mixed"});
    return Reshape(Transpose("mixed", {0, 2, 1, 3}, "mixed.t"), joined, "joined");
  }
  void Project(const std::string& from) {
    MatMul("project", from, 12, 8);
    model_.Output("project");
  }

  std::map<size_t, std::string> why_not_;
};

TEST_F(HeadSetsTest, SeparateProducts) {
  model_.Input("x", {"2", "5", "8"});
  for (const char* name : {"q", "k", "v"}) {
    MatMul(name, "x", 8, 12);
    // The number of heads as bert_base has it, written out, and from its place.
    const std::vector<std::vector<int64_t>> shapes = {{2, 5, -1, 3}, {2, 5, 4, 3}, {0, 0, 4, -1}};
    const std::string split = Reshape(name, shapes[seed_ / 2 % 3], std::string(name) + ".s");
    Transpose(split, {0, 2, 1, 3}, std::string(name) + ".h");
  }
  Project(Mixed("q.h", "k.h", "v.h"));
  Read();
  ASSERT_THAT(sets_, SizeIs(1));
  EXPECT_EQ(sets_[0].channels, 4);
  EXPECT_THAT(Names(sets_[0].makers), UnorderedElementsAre("q", "k", "v"));
  EXPECT_THAT(Names(sets_[0].readers), ElementsAre("project"));
  ExpectHalfIsTakenOut();
}

TEST_F(HeadSetsTest, OneProductThatSplitCutsAsInGpt2) {
  for (const bool sizes : {false, true}) {
    model_ = OnnxModel(17);
    model_.Input("x", {"2", "5", "8"});
    Gemm("qkv", Reshape("x", {-1, 8}, "rows"), 8, 36);
    Reshape("qkv", {2, 5, 36}, "wide");
    std::vector<std::string> inputs = {"wide"};
    if (sizes) inputs.emplace_back("sizes");
    if (sizes) model_.Ints("sizes", {12, 12, 12});
    SetInt(model_.Node("Split", inputs, {"q", "k", "v"}), "axis", -1);
    for (const std::string name : {"q", "k", "v"})
      Transpose(Reshape(name, {2, 5, -1, 3}, name + ".s"), {0, 2, 1, 3}, name + ".h");
    Gemm("project", Mixed("q.h", "k.h", "v.h", {10, 12}), 12, 8);
    model_.Output(Reshape("project", {2, 5, 8}, "y"));
    Read();
    ASSERT_THAT(sets_, SizeIs(1));
    EXPECT_THAT(Names(sets_[0].makers), ElementsAre("qkv"));
    ExpectHalfIsTakenOut();
  }
}

TEST_F(HeadSetsTest, OneProductThatSlicesCut) {
  model_.Input("x", {"2", "5", "8"});
  MatMul("qkv", "x", 8, 36);
  model_.Ints("axes", {2});
  constexpr int64_t kEnds[] = {12, -12, int64_t{1} << 40};
  for (int64_t part = 0; part < 3; ++part) {
    const std::string name = fmt::format("{}", part);
    model_.Ints(name + ".from", {part == 1 ? -24 : 12 * part});
    model_.Ints(name + ".to", {kEnds[part]});
    model_.Node("Slice", {"qkv", name + ".from", name + ".to", "axes"}, {name});
    Transpose(Reshape(name, {2, 5, 4, 3}, name + ".s"), {0, 2, 1, 3}, name + ".h");
  }
  Project(Mixed("0.h", "1.h", "2.h"));
  Read();
  ASSERT_THAT(sets_, SizeIs(1));
  ExpectHalfIsTakenOut();
}

TEST_F(HeadSetsTest, OneProductWhoseReshapeTellsQueriesKeysAndValuesApart) {
  model_.Input("x", {"2", "5", "8"});
  MatMul("qkv", "x", 8, 36);
  Transpose(Reshape("qkv", {2, 5, 3, 4, 3}, "five"), {2, 0, 3, 1, 4}, "apart");
  for (int64_t part = 0; part < 3; ++part) {
    const std::string name = fmt::format("{}", part);
    model_.Ints(name + ".at", {part});
    model_.Node("Gather", {"apart", name + ".at"}, {name + ".g"});
    Reshape(name + ".g", {2, -1, 5, 3}, name);
  }
  Project(Mixed("0", "1", "2"));
  Read();
  ASSERT_THAT(sets_, SizeIs(1));
  EXPECT_EQ(sets_[0].channels, 4);
  ExpectHalfIsTakenOut();
}

TEST_F(HeadSetsTest, BiasesOfHeadsAndHalvesThatAreTurned) {
  model_.Input("x", {"2", "5", "8"});
  AddWeights(model_, "position", {1, 4, 5, 5}, ++seed_);
  model_.Ints("one", {1});
  model_.Ints("three", {3});
  model_.Ints("zero", {0});
  model_.Ints("last", {3});
  for (const std::string name : {"q", "k", "v"}) {
    MatMul(name, "x", 8, 12);
    Transpose(Reshape(name, {2, 5, 4, 3}, name + ".s"), {0, 2, 1, 3}, name + ".h");
  }
  for (const std::string name : {"q", "k"}) {  // as rotary embeddings turn them
    model_.Node("Slice", {name + ".h", "zero", "one", "last"}, {name + ".first"});
    model_.Node("Slice", {name + ".h", "one", "three", "last"}, {name + ".second"});
    model_.Node("Neg", {name + ".second"}, {name + ".n"});
    SetInt(model_.Node("Concat", {name + ".n", name + ".first"}, {name + ".r"}), "axis", -1);
  }
  Transpose("k.r", {0, 1, 3, 2}, "kt");
  model_.Node("MatMul", {"q.r", "kt"}, {"scores"});
  model_.Node("Add", {"scores", "position"}, {"biased"});
  model_.Node("Softmax", {"biased"}, {"shares"});
  model_.Node("MatMul", {"shares", "v.h"}, {"mixed"});
  Project(Reshape(Transpose("mixed", {0, 2, 1, 3}, "t"), {2, 5, 12}, "joined"));
  Read();
  ASSERT_THAT(sets_, SizeIs(1));
  ExpectHalfIsTakenOut();
}

TEST_F(HeadSetsTest, SaysWhyHeadsOfACacheStay) {
  model_.Input("x", {"2", "5", "8"});
  model_.Input("past", {"2", "4", "7", "3"});
  for (const std::string name : {"q", "k", "v"}) {
    MatMul(name, "x", 8, 12);
    Transpose(Reshape(name, {2, 5, -1, 3}, name + ".s"), {0, 2, 1, 3}, name + ".h");
  }
  SetInt(model_.Node("Concat", {"past", "v.h"}, {"all"}), "axis", 2);
  Transpose("k.h", {0, 1, 3, 2}, "kt");
  model_.Node("MatMul", {"q.h", "kt"}, {"scores"});
  AddWeights(model_, "widen", {5, 12}, 77);
  model_.Node("MatMul", {"scores", "widen"}, {"wide"});
  model_.Node("Softmax", {"wide"}, {"shares"});
  model_.Node("MatMul", {"shares", "all"}, {"mixed"});
  Project(Reshape(Transpose("mixed", {0, 2, 1, 3}, "t"), {2, 5, 12}, "joined"));
  Read();
  EXPECT_THAT(sets_, SizeIs(0));
  ASSERT_THAT(why_not_, SizeIs(1));
  EXPECT_EQ(source_.layers[why_not_.begin()->first].name, "project");
  EXPECT_EQ(why_not_.begin()->second, "its heads are those of past, an input of the model");
}

TEST_F(HeadSetsTest, SaysWhichNodeDoesNotKeepThemApart) {
  model_.Input("x", {"2", "5", "8"});
  for (const std::string name : {"q", "k", "v"}) {
    MatMul(name, "x", 8, 12);
    Transpose(Reshape(name, {2, 5, -1, 3}, name + ".s"), {0, 2, 1, 3}, name + ".h");
  }
  SetInt(model_.Node("CumSum", {"v.h", "axis"}, {"summed"}), "exclusive", 0);
  model_.graph().mutable_node(model_.graph().node_size() - 1)->set_name("adder");
  model_.Ints("axis", {1});
  Project(Mixed("q.h", "k.h", "summed"));
  Read();
  EXPECT_THAT(sets_, SizeIs(0));
  ASSERT_THAT(why_not_, SizeIs(1));
  EXPECT_EQ(why_not_.begin()->second, "CumSum adder does not keep its heads apart");
}

TEST_F(HeadSetsTest, ShapesThatAreJoinedOfKnownAndComputedParts) {
  for (const bool computed : {false, true}) {
    model_ = OnnxModel(17);
    model_.Input("x", {"2", "5", "8"});
    model_.Ints("from", {0});
    model_.Ints("to", {2});
    model_.Ints("four", {4});
    model_.Ints("four.part", {4});
    model_.Ints("three", {3});
    model_.Node("Shape", {"x"}, {"shape"});
    model_.Node("Slice", {"shape", "from", "to"}, {"rows"});
    model_.Node("Add", {"four.part", "from"}, {"four.sum"});
    SetInt(model_.Node("Concat", {"rows", computed ? "four.sum" : "four", "three"}, {"heads"}),
           "axis", 0);
    for (const std::string name : {"q", "k", "v"}) {
      MatMul(name, "x", 8, 12);
      model_.Node("Reshape", {name, "heads"}, {name + ".s"}).set_name(name + ".reshape");
      Transpose(name + ".s", {0, 2, 1, 3}, name + ".h");
    }
    Project(Mixed("q.h", "k.h", "v.h"));
    Read();
    if (!computed) {
      ASSERT_THAT(sets_, SizeIs(1));
      ExpectHalfIsTakenOut();
      continue;
    }
    EXPECT_THAT(sets_, SizeIs(0));
    ASSERT_THAT(why_not_, SizeIs(1));
    EXPECT_EQ(why_not_.begin()->second, "the shape of Reshape q.reshape is computed");
  }
}

/// How many attentions of how many heads the networks of tests/models have, and why others stay.
struct ModelHeads {
  const char* name;
  std::vector<int64_t> heads;
  size_t refused;
};
class ModelHeadsTest : public ::testing::TestWithParam<ModelHeads> {};

TEST_P(ModelHeadsTest, FindsTheAttentionsOfTheModel) {
  const std::string path = hone::testing::ModelsDir() + "/" + GetParam().name + ".onnx";
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << path << " is not there (scripts/models.sh makes it)";
  const auto source = onnx_quantise::ReadSourceModel(path, onnx_quantise::SourceUse::kPrune);
  ASSERT_TRUE(source.ok()) << source.status();
  const auto graph = ImportOnnxFile(path);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const ChannelSets found = FindHeadSets(*source, *graph);
  std::vector<int64_t> heads;
  for (const ChannelSet& set : found.sets) heads.push_back(set.channels);
  EXPECT_EQ(heads, GetParam().heads);
  EXPECT_EQ(found.why_not.size(), GetParam().refused);
  for (const auto& [layer, why] : found.why_not)
    EXPECT_THAT(why,
                ::testing::MatchesRegex("its heads are those of .*, an (in|out)put of the model"));
}

INSTANTIATE_TEST_SUITE_P(
    All, ModelHeadsTest,
    ::testing::Values(ModelHeads{"bert_base", std::vector<int64_t>(12, 12), 0},
                      ModelHeads{"bert_small", std::vector<int64_t>(4, 4), 0},
                      ModelHeads{"vit_small", std::vector<int64_t>(12, 6), 0},
                      ModelHeads{"gpt2_prefill", std::vector<int64_t>(6, 12), 0},
                      ModelHeads{"segformer_b0", {2, 2, 5, 5, 8, 8}, 0},
                      ModelHeads{"gpt2_decode", {}, 6}, ModelHeads{"resnet18", {}, 0}),
    [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace hone::graph::onnx_prune
