// What `hone inspect` tells of a model: the whole of what runs, and the memory it takes.
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "base/file.h"
#include "client/npz.h"
#include "graph/graph.h"
#include "runtime/package.h"
#include "tests/client/run_hone.h"
#include "tests/graph/onnx_model.h"

namespace hone::client {
namespace {

using graph::OnnxModel;
using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing::ProgramRun;
using testing::RunHone;
using testing::TemporaryFolder;

json Inspected(const std::string& path) {
  const ProgramRun run = RunHone({"inspect", path, "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return json::parse(run.out);
}

class InspectTest : public ::testing::Test {
 protected:
  void Write(const OnnxModel& model) {
    ASSERT_TRUE(WriteFileAtomically(path_, model.Bytes()).ok());
  }
  const TemporaryFolder folder_;
  const std::string path_ = folder_.Path("m.onnx");
};

// Two products of 16 by 16 in turn: three tensors of 1 KiB, of which the caller has two.
TEST_F(InspectTest, TellsPassesKernelsAndMemoryOfAModel) {
  OnnxModel model;
  model.Input("x", {"16", "16"}).Input("w", {"16", "16"}).Output("y");
  model.Node("MatMul", {"x", "w"}, {"a"});
  model.Node("Relu", {"a"}, {"b"});
  model.Node("MatMul", {"b", "w"}, {"y"});
  Write(model);
  const json object = Inspected(path_);
  double flop = 0, bytes = 0;
  for (const json& kernel : object["kernels"]) {
    flop += kernel["flop"].get<double>() * kernel["count"].get<double>();
    bytes += kernel["bytes"].get<double>() * kernel["count"].get<double>();
  }
  EXPECT_GE(flop, 2 * 2 * 16 * 16 * 16);
  // Each product reads two tensors and writes one.
  EXPECT_GE(bytes, 6 * 1024);
  EXPECT_LE(bytes, 10 * 1024);
  EXPECT_TRUE(object["externs"].empty());

  const std::string details = RunHone({"inspect", path_, "-v"}).out;
  for (const json& pass : object["passes"])
    EXPECT_THAT(details, HasSubstr(pass["pass"].get<std::string>()));
  const ProgramRun run = RunHone({"inspect", path_});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, ContainsRegex("passes: [0-9]+ of [0-9]+ changed the graph"));
  const auto megabytes = [&](const char* key) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f MB", object["memory"][key].get<double>() * 1e-6);
    return std::string(text);
  };
  EXPECT_THAT(run.out, HasSubstr("memory: peak " + megabytes("peak_bytes") + ", sum of tensors " +
                                 megabytes("sum_bytes") + ", lower bound " +
                                 megabytes("lower_bound_bytes") + "\n"));
  EXPECT_GE(object["memory"]["lower_bound_bytes"], 1024);
  EXPECT_LE(object["memory"]["sum_bytes"], 4 * 1024);
  EXPECT_THAT(run.out, ContainsRegex("whole model: [0-9.e-]+ GFLOP, [0-9.]+ MB moved"));
  EXPECT_THAT(run.out,
              HasSubstr("barriers between threads: " + object["barriers"]["count"].dump() +
                        " in each run, " + object["barriers"]["left_out"].dump() + " left out\n"));
}

TEST_F(InspectTest, TellsExternsAndAliases) {
  OnnxModel model;
  model.Input("x", {"4", "100"}).Ints("k", {5}).Ints("s", {20}).Output("y");
  model.Node("Exp", {"x"}, {"e"});
  model.Node("TopK", {"e", "k"}, {"values", "indices"});
  model.Node("Reshape", {"values", "s"}, {"flat"});
  model.Node("CumSum", {"flat", "axis"}, {"y"});
  onnx::TensorProto& axis = *model.graph().add_initializer();
  axis.set_name("axis");
  axis.set_data_type(onnx::TensorProto::INT64);
  axis.add_int64_data(0);
  Write(model);
  const json object = Inspected(path_);
  ASSERT_EQ(object["externs"].size(), 1U);
  const json& top = object["externs"][0];
  EXPECT_EQ(top["name"], "TopK of f32[4,100]");
  EXPECT_EQ(top["count"], 1);
  EXPECT_EQ(top["rung"], "extern");
  EXPECT_EQ(top["bytes"], 4 * (4 * 100 + 4 * 5) + 8 * 4 * 5);
  int steps = 1;
  for (const json& kernel : object["kernels"]) steps += kernel["count"].get<int>();
  EXPECT_EQ(object["steps"], steps);

  const ProgramRun run = RunHone({"inspect", path_});
  EXPECT_THAT(run.out, ContainsRegex("1 +- +0.002 .*extern +TopK of f32\\[4,100\\]"));
  EXPECT_THAT(run.out, HasSubstr(std::to_string(steps) + " steps, " + object["aliases"].dump() +
                                 " values share another's memory"));

  ASSERT_EQ(RunHone({"compile", path_, "-o", folder_.Path("m.hone")}).exit_code, 0);
  EXPECT_EQ(Inspected(folder_.Path("m.hone"))["externs"], (json{{"TopK", 1}}));
  EXPECT_THAT(RunHone({"inspect", folder_.Path("m.hone")}).out, ContainsRegex("TopK +1 x  extern"));
}

// Who looks into a package does not trust it yet: code that runs when it is loaded must not.
TEST_F(InspectTest, RunsNoCodeOfAPackage) {
  OnnxModel model;
  model.Input("x", {"16", "16"}).Output("y");
  model.Node("Softmax", {"x"}, {"y"});
  Write(model);
  const std::string path = folder_.Path("m.hone"), trace = folder_.Path("it-ran");
  ASSERT_EQ(RunHone({"compile", path_, "-o", path, "--threads", "1"}).exit_code, 0);
  const std::string bytes = *ReadFile(path);
  auto package = runtime::ParsePackage(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(package.ok());
  ASSERT_TRUE(WriteFileAtomically(folder_.Path("evil.c"),
                                  "#include <fcntl.h>\n__attribute__((constructor)) static void "
                                  "Run(void) { open(\"" +
                                      trace + "\", O_CREAT | O_WRONLY, 0600); }\n")
                  .ok());
  const ProgramRun built = testing::RunProcess(
      {"/usr/bin/cc", "-shared", "-fPIC", folder_.Path("evil.c"), "-o", folder_.Path("evil.so")},
      "/dev/null");
  ASSERT_EQ(built.exit_code, 0) << built.err;
  const std::string code = *ReadFile(folder_.Path("evil.so"));
  package->code = std::as_bytes(std::span(code));
  const std::string evil = folder_.Path("evil.hone");
  ASSERT_TRUE(runtime::WritePackage(*package, evil).ok());
  const json object = Inspected(evil);
  EXPECT_EQ(object["kernels"].size(), Inspected(path)["kernels"].size());
  EXPECT_FALSE(std::filesystem::exists(trace));
  // The same package runs its code where it is loaded.
  EXPECT_NE(RunHone({"bench", evil, "--seconds", "0.01"}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(trace));
}

// The halves of one tensor are parts of its memory: nothing is copied.
TEST_F(InspectTest, PartsOfATensorAreAliases) {
  OnnxModel model;
  model.Input("x", {"4", "64"}).Ints("k", {2}).Ints("sizes", {2, 2}).Output("y").Output("z");
  model.Node("Softmax", {"x"}, {"s"});
  onnx::NodeProto& split = model.Node("Split", {"s", "sizes"}, {"a", "b"});
  graph::SetInt(split, "axis", 0);
  model.Node("TopK", {"a", "k"}, {"y", "i"});
  model.Node("TopK", {"b", "k"}, {"z", "j"});
  Write(model);
  const json object = Inspected(path_);
  EXPECT_EQ(object["aliases"], 2) << RunHone({"inspect", path_}).out;
  EXPECT_EQ(object["externs"][0]["count"], 2);
}

// A batch of three whose images do not meet, run together and one after the other.
TEST_F(InspectTest, TellsThatAPackageRunsImageByImage) {
  OnnxModel model;
  model.Input("x", {"3", "10", "7"}).Output("y");
  model.Node("Softmax", {"x"}, {"a"});
  model.Node("Mul", {"a", "x"}, {"y"});
  Write(model);
  const std::string each = folder_.Path("each.hone"), together = folder_.Path("together.hone");
  const auto compile = [&](const std::string& how, const std::string& package) {
    return RunHone({"compile", path_, "--no-log", "--batch", how, "-o", package});
  };
  const ProgramRun said = compile("each", each);
  ASSERT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("3 images one after the other"));
  ASSERT_EQ(compile("together", together).exit_code, 0);
  EXPECT_TRUE(Inspected(together)["loops"].empty());
  const json loops = Inspected(each)["loops"];
  ASSERT_EQ(loops.size(), 1);
  EXPECT_EQ(loops[0]["repeats"], 3);
  for (const json& kernel : Inspected(each)["kernels"])
    EXPECT_EQ(kernel["count"].get<int>() % 3, 0);
  EXPECT_THAT(RunHone({"inspect", each}).out, HasSubstr("run 3 times, one image after the other"));

  const std::string inputs = folder_.Path("x.npz"), outputs = folder_.Path("y.npz");
  std::vector<double> values;
  for (int i = 0; i < 3 * 10 * 7; ++i) values.push_back(i % 13 * 0.25);
  ASSERT_TRUE(
      WriteNpz(inputs, {{"x", *graph::MakeConstant(ir::DType::kF32, {3, 10, 7}, values)}}).ok());
  ASSERT_EQ(RunHone({"run", together, "--inputs", inputs, "--outputs", outputs}).exit_code, 0);
  const ProgramRun same = RunHone({"run", each, "--inputs", inputs, "--expect", outputs});
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
}

TEST_F(InspectTest, ABatchWhoseImagesMeetIsNotRunImageByImage) {
  OnnxModel model;
  model.Input("x", {"3", "10"}).Output("y");
  onnx::NodeProto& node = model.Node("Softmax", {"x"}, {"y"});
  node.set_name("over_images");
  graph::SetInt(node, "axis", 0);
  Write(model);
  const std::string package = folder_.Path("m.hone");
  const ProgramRun run = RunHone({"compile", path_, "--no-log", "--batch", "each", "-o", package});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.err, HasSubstr("cannot run image by image: node over_images (Softmax)"));
}

// A past of no tokens, as a language model gets it first.
TEST_F(InspectTest, AnInputWithoutElementsStaysAnInputOfThePackage) {
  OnnxModel model;
  model.Input("past", {"2", "0"}).Input("x", {"2", "3"}).Output("y");
  graph::SetInt(model.Node("Concat", {"past", "x"}, {"y"}), "axis", 1);
  Write(model);
  const std::string package = folder_.Path("m.hone");
  ASSERT_EQ(RunHone({"compile", path_, "-o", package, "--no-log"}).exit_code, 0);
  EXPECT_THAT(RunHone({"inspect", package}).out, HasSubstr("past: f32[2,0]\n"));
  const auto x = graph::MakeConstant(ir::DType::kF32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const auto past = graph::MakeConstant(ir::DType::kF32, {2, 0}, {});
  for (const bool given : {true, false}) {
    NamedTensors inputs = {{"x", *x}};
    if (given) inputs.emplace_back("past", *past);
    ASSERT_TRUE(WriteNpz(folder_.Path("i.npz"), inputs).ok());
    const ProgramRun run = RunHone(
        {"run", package, "--inputs", folder_.Path("i.npz"), "--outputs", folder_.Path("o.npz")});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.err, "") << "nothing is left unused";
    EXPECT_EQ(ReadNpz(folder_.Path("o.npz"))->front().second.AsDoubles(),
              (std::vector<double>{1, 2, 3, 4, 5, 6}));
  }
  EXPECT_EQ(RunHone({"bench", package, "--seconds", "0.1"}).exit_code, 0);
  EXPECT_EQ(RunHone({"check", path_, "--no-log"}).exit_code, 0);
}

}  // namespace
}  // namespace hone::client
