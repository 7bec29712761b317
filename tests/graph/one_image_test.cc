#include "graph/one_image.h"

#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/compiler/graph_maker.h"

namespace hone::graph {
namespace {

using compiler::GraphMaker;
using ::testing::HasSubstr;
using Shape = std::vector<int64_t>;

/// A batch of three; `make` gives the output.
Graph Batch(Shape shape, const std::function<ValueId(GraphMaker&, ValueId)>& make) {
  GraphMaker maker(3);
  const ValueId x = maker.Input("x", std::move(shape));
  return maker.Finish({make(maker, x)});
}

/// i64[3,3,2]: three columns of the row of each image.
ValueId Positions(GraphMaker& maker, const Shape& rows) {
  Shape values;
  for (const int64_t row : rows) values.insert(values.end(), {row, 1, row, 2, row, 3});
  return maker.Constant(MakeInt64s({3, 3, 2}, values));
}

/// The type of the output for one image; empty: refused.
std::string OneOf(const Graph& graph) {
  const absl::StatusOr<OneImage> one = OneImageOf(graph);
  if (!one.ok()) return "";
  EXPECT_EQ(one->images, 3);
  return ToText(one->graph.values[static_cast<size_t>(one->graph.outputs[0])].type);
}

TEST(OneImage, IsCutOutOfWhatComputesImagesApart) {
  struct Case {
    Shape input;
    std::function<ValueId(GraphMaker&, ValueId)> make;
    const char* output;
  };
  const Attributes window = {{"strides", Shape{1, 1}},
                             {"dilations", Shape{1, 1}},
                             {"pads", Shape{1, 1, 1, 1}},
                             {"group", int64_t{1}},
                             {"layout", std::string("nchw")}};
  const Case cases[] = {
      {{3, 4}, [](GraphMaker& m, ValueId x) { return m.Unary("exp", x); }, "f32[1,4]"},
      {{3, 4, 5, 5},
       [&](GraphMaker& m, ValueId x) {
         return m.Node("Conv", window, {x, m.Weights({6, 4, 3, 3})});
       },
       "f32[1,6,5,5]"},
      {{3, 5, 4},
       [](GraphMaker& m, ValueId x) {
         return m.Node("MatMul", {}, {x, m.Weights({4, 7})});
       },
       "f32[1,5,7]"},
      // Tokens of all sequences in one axis, and back.
      {{3, 5, 4},
       [](GraphMaker& m, ValueId x) {
         const ValueId flat = m.Node("Reshape", {{"shape", Shape{15, 4}}}, {x});
         const ValueId y = m.Node("MatMul", {}, {flat, m.Weights({4, 6})});
         return m.Node("Reshape", {{"shape", Shape{3, 5, 6}}}, {y});
       },
       "f32[1,5,6]"},
      {{3, 4, 2},
       [](GraphMaker& m, ValueId x) {
         return m.Node("Reshape", {{"shape", Shape{24}}}, {x});
       },
       "f32[8]"},
      {{3, 4},
       [](GraphMaker& m, ValueId x) {
         return m.Node("Softmax", {{"axis", int64_t{1}}}, {x});
       },
       "f32[1,4]"},
      {{3, 4, 6},
       [](GraphMaker& m, ValueId x) {
         return m.Node(
             "Slice",
             {{"starts", Shape{0, 1, 5}}, {"steps", Shape{1, 1, -2}}, {"sizes", Shape{3, 2, 3}}},
             {x});
       },
       "f32[1,2,3]"},
      {{3, 4},
       [](GraphMaker& m, ValueId x) {
         return m.Concat(1, {x, m.Unary("exp", x)});
       },
       "f32[1,8]"},
      // Each image's product with itself.
      {{3, 4, 5},
       [](GraphMaker& m, ValueId x) {
         return m.Node("MatMul", {{"transpose_b", int64_t{1}}}, {x, x});
       },
       "f32[1,4,4]"},
      {{3, 4},
       [](GraphMaker& m, ValueId x) {
         return m.Node("Expand", {{"shape", Shape{3, 2, 4}}},
                       {m.Node("Reshape", {{"shape", Shape{3, 1, 4}}}, {x})});
       },
       "f32[1,2,4]"},
      // Three parts of the features become the outermost axis, and one of them is taken.
      {{3, 5, 12},
       [](GraphMaker& m, ValueId x) {
         const ValueId parts = m.Node("Reshape", {{"shape", Shape{3, 5, 3, 4}}}, {x});
         const ValueId turned = m.Node("Transpose", {{"perm", Shape{2, 0, 1, 3}}}, {parts});
         const ValueId heads = m.Node("Reshape", {{"shape", Shape{3, 3, 5, 2, 2}}}, {turned});
         const ValueId part = m.Node("Slice",
                                     {{"starts", Shape{1, 0, 0, 0, 0}},
                                      {"steps", Shape{1, 1, 1, 1, 1}},
                                      {"sizes", Shape{1, 3, 5, 2, 2}}},
                                     {m.Unary("exp", heads)});
         return m.Node("Reshape", {{"shape", Shape{3, 5, 2, 2}}}, {part});
       },
       "f32[1,5,2,2]"},
      {{3, 4},
       [](GraphMaker& m, ValueId x) {
         const ValueId turned = m.Node("Transpose", {{"perm", Shape{1, 0}}}, {x});
         const ValueId soft = m.Node("Softmax", {{"axis", int64_t{0}}}, {turned});
         return m.Node("Transpose", {{"perm", Shape{1, 0}}}, {soft});
       },
       "f32[1,4]"},
      // Positions of every image: its own row, columns 1, 2 and 3.
      {{3, 4},
       [](GraphMaker& m, ValueId x) {
         return m.Node("GatherND", {}, {x, Positions(m, {0, 1, 2})});
       },
       "f32[1,3]"},
  };
  for (const Case& each : cases) {
    const Graph graph = Batch(each.input, each.make);
    EXPECT_EQ(OneOf(graph), each.output) << ToText(graph) << OneImageOf(graph).status();
  }
}

TEST(OneImage, IsRefusedWhereImagesMeet) {
  struct Case {
    Shape input;
    std::function<ValueId(GraphMaker&, ValueId)> make;
  };
  const auto reduce = [](Shape axes) {
    return Attributes{
        {"fn", std::string("sum")}, {"axes", std::move(axes)}, {"keepdims", int64_t{1}}};
  };
  const Case cases[] = {
      {{3, 4},
       [](GraphMaker& m, ValueId x) {
         return m.Node("Softmax", {{"axis", int64_t{0}}}, {x});
       }},
      {{3, 4}, [&](GraphMaker& m, ValueId x) { return m.Node("Reduce", reduce({0}), {x}); }},
      // The sum over the batch, seen again by every image.
      {{3, 4},
       [&](GraphMaker& m, ValueId x) {
         return m.Node("Binary", {{"fn", std::string("add")}},
                       {x, m.Node("Reduce", reduce({0}), {x})});
       }},
      {{3, 4},
       [](GraphMaker& m, ValueId x) {
         return m.Node("Transpose", {{"perm", Shape{1, 0}}}, {x});
       }},
      {{3, 4},
       [](GraphMaker& m, ValueId x) {
         return m.Node("Reshape", {{"shape", Shape{2, 6}}}, {x});
       }},
      {{3, 4},
       [](GraphMaker& m, ValueId x) {
         return m.Node("Reshape", {{"shape", Shape{1, 12}}}, {x});
       }},
      // The heads of all images beside each other, heads outermost.
      {{3, 2, 4},
       [](GraphMaker& m, ValueId x) {
         const ValueId turned = m.Node("Transpose", {{"perm", Shape{1, 0, 2}}}, {x});
         return m.Node("Reshape", {{"shape", Shape{6, 4}}}, {turned});
       }},
      {{3, 3},
       [](GraphMaker& m, ValueId x) {
         return m.Node("MatMul", {}, {x, x});
       }},
      // Each image's product with the second one.
      {{3, 4, 4},
       [](GraphMaker& m, ValueId x) {
         const ValueId second = m.Node(
             "Slice",
             {{"starts", Shape{1, 0, 0}}, {"steps", Shape{1, 1, 1}}, {"sizes", Shape{1, 4, 4}}},
             {x});
         return m.Node("MatMul", {}, {x, second});
       }},
      {{3, 4},
       [](GraphMaker& m, ValueId x) {
         return m.Node("Slice",
                       {{"starts", Shape{2, 0}}, {"steps", Shape{-1, 1}}, {"sizes", Shape{3, 4}}},
                       {x});
       }},
      {{3, 4},
       [](GraphMaker& m, ValueId x) {
         return m.Concat(0, {x, m.Unary("exp", x), x});
       }},
      {{3, 4},
       [](GraphMaker& m, ValueId x) {
         const ValueId order = m.Constant(MakeInt64s({3}, {2, 0, 1}));
         return m.Node("Gather", {{"axis", int64_t{0}}}, {x, order});
       }},
      // Positions in the first image for all, and in another than their own.
      {{3, 4},
       [](GraphMaker& m, ValueId x) {
         return m.Node("GatherND", {}, {x, Positions(m, {0, 0, 0})});
       }},
      {{3, 4},
       [](GraphMaker& m, ValueId x) {
         return m.Node("GatherND", {}, {x, Positions(m, {1, 2, 0})});
       }},
      {{3, 4},
       [](GraphMaker& m, ValueId x) {
         return m.Node("GatherND", {}, {x, Positions(m, {2, 1, 0})});
       }},
      // The batch inside, where images meet after all: a sum over it, its middle one.
      {{3, 4},
       [&](GraphMaker& m, ValueId x) {
         const ValueId turned = m.Node("Transpose", {{"perm", Shape{1, 0}}}, {x});
         const ValueId soft = m.Node("Softmax", {{"axis", int64_t{1}}}, {turned});
         return m.Node("Transpose", {{"perm", Shape{1, 0}}}, {soft});
       }},
      {{3, 3},
       [](GraphMaker& m, ValueId x) {
         const ValueId turned = m.Node("Transpose", {{"perm", Shape{1, 0}}}, {x});
         return m.Node("Binary", {{"fn", std::string("add")}}, {x, turned});
       }},
      {{3, 4},
       [](GraphMaker& m, ValueId x) {
         const ValueId turned = m.Node("Transpose", {{"perm", Shape{1, 0}}}, {x});
         const ValueId middle = m.Node(
             "Slice", {{"starts", Shape{0, 1}}, {"steps", Shape{1, 1}}, {"sizes", Shape{4, 1}}},
             {turned});
         return m.Node("Transpose", {{"perm", Shape{1, 0}}},
                       {m.Node("Binary", {{"fn", std::string("add")}}, {turned, middle})});
       }},
      // A weight for each image, which one image alone does not know.
      {{3, 4},
       [](GraphMaker& m, ValueId x) {
         return m.Node("Binary", {{"fn", std::string("mul")}}, {x, m.Weights({3, 1})});
       }},
      {{3, 4},
       [](GraphMaker& m, ValueId x) {
         return m.Node("CumSum", {{"axis", int64_t{0}}}, {x});
       }},
      // A batch of one.
      {{1, 4}, [](GraphMaker& m, ValueId x) { return m.Unary("exp", x); }},
      // Not a loop nest.
      {{3, 4},
       [](GraphMaker& m, ValueId x) {
         return m.Node("TopK",
                       {{"axis", int64_t{1}},
                        {"k", int64_t{2}},
                        {"largest", int64_t{1}},
                        {"sorted", int64_t{1}}},
                       {x});
       }},
  };
  for (const Case& each : cases) {
    const Graph graph = Batch(each.input, each.make);
    EXPECT_EQ(OneOf(graph), "") << ToText(graph);
  }
}

TEST(OneImage, SaysWhatIsInTheWay) {
  const Graph graph = Batch({3, 4}, [](GraphMaker& m, ValueId x) {
    return m.Node("Softmax", {{"axis", int64_t{0}}}, {m.Unary("exp", x)});
  });
  const absl::Status status = OneImageOf(graph).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("node Softmax (Softmax) does not compute each image of the batch by itself"));
}

TEST(OneImage, GivesTheBatchFirstOnly) {
  const Graph graph = Batch({3, 4}, [](GraphMaker& m, ValueId x) {
    return m.Node("Transpose", {{"perm", Shape{1, 0}}}, {x});
  });
  EXPECT_THAT(std::string(OneImageOf(graph).status().message()),
              HasSubstr("output 'y0' does not have the batch as its first extent"));
}

TEST(OneImage, TakesInputsOfOneBatchOnly) {
  GraphMaker maker(3);
  const ValueId x = maker.Input("x", {3, 4});
  const ValueId scale = maker.Input("scale", {1, 4});
  const Graph graph =
      maker.Finish({maker.Node("Binary", {{"fn", std::string("mul")}}, {x, scale})});
  EXPECT_THAT(std::string(OneImageOf(graph).status().message()),
              HasSubstr("input 'scale' of f32[1,4]"));
}

}  // namespace
}  // namespace hone::graph
