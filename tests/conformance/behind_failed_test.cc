// Nodes whose inputs come from a node that cannot be imported: what is wrong with them whatever
// these inputs are is reported, and nothing is that is right.
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/file.h"
#include "base/status.h"
#include "graph/onnx_import/import.h"
#include "graph/onnx_import/onnx.pb.h"

namespace hone::conformance {
namespace {

constexpr char kRoot[] = "/usr/share/libonnx-testdata/data/node";

/// A case's one node, its inputs made by one that nobody knows.
std::optional<onnx::ModelProto> BehindAFailedOne(const std::filesystem::path& path) {
  const auto bytes = ReadFile(path.string());
  onnx::ModelProto model;
  if (!bytes.ok() || !model.ParseFromString(*bytes) || model.graph().node_size() != 1)
    return std::nullopt;
  if (!graph::ImportOnnx(std::as_bytes(std::span(*bytes))).ok()) return std::nullopt;
  onnx::GraphProto& graph = *model.mutable_graph();
  onnx::NodeProto* failed = graph.add_node();
  failed->set_op_type("Frobnicate");
  for (const onnx::ValueInfoProto& input : graph.input()) failed->add_output(input.name());
  graph.clear_input();
  return model;
}

std::string ErrorOf(const onnx::ModelProto& model) {
  const std::string bytes = model.SerializeAsString();
  return StatusMessage(graph::ImportOnnx(std::as_bytes(std::span(bytes))).status());
}

TEST(BehindFailedTest, WhatIsRightIsNotReportedAndMostOfWhatIsWrong) {
  if (!std::filesystem::exists(kRoot)) GTEST_SKIP() << "libonnx-testdata is not installed";
  int cases = 0, found = 0;
  std::set<std::string> missed;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot)) {
    std::optional<onnx::ModelProto> model = BehindAFailedOne(entry.path() / "model.onnx");
    if (!model) continue;
    ++cases;
    EXPECT_THAT(ErrorOf(*model), ::testing::HasSubstr("(Frobnicate)")) << entry.path();
    EXPECT_THAT(ErrorOf(*model), ::testing::Not(::testing::HasSubstr("\n"))) << entry.path();
    onnx::NodeProto& node = *model->mutable_graph()->mutable_node(0);
    onnx::AttributeProto* wrong = node.add_attribute();
    wrong->set_name("bogus");
    wrong->set_type(onnx::AttributeProto::INT);
    wrong->set_i(1);
    if (ErrorOf(*model).find("unknown attribute 'bogus'") != std::string::npos)
      ++found;
    else
      missed.insert(node.op_type());
  }
  fmt::print("{} cases, a wrong attribute found in {}; missed in some of {}\n", cases, found,
             fmt::join(missed, " "));
  EXPECT_GT(found, cases / 2);
}

}  // namespace
}  // namespace hone::conformance
