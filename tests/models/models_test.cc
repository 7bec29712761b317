// The networks of tests/models: compiled with the default schedules, run, compared with what ONNX
// Runtime computed.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/status.h"
#include "client/compare.h"
#include "client/model_session.h"
#include "client/npz.h"
#include "compiler/compile_model.h"
#include "graph/onnx_import/import.h"
#include "ir/target.h"
#include "measure/builder_client.h"
#include "runtime/executable.h"
#include "tests/test_paths.h"

namespace hone {
namespace {

using client::Comparison;
using client::FindTensor;
using client::ModelSession;
using client::NamedTensors;

/// Heavy and light ones alternate, so that two shards take about as long.
constexpr const char* kModels[] = {"gpt2_prefill",
                                   "bert_base",
                                   "vgg16",
                                   "unet",
                                   "densenet121",
                                   "vit_small",
                                   "convnext_tiny",
                                   "segformer_b0",
                                   "gpt2_decode",
                                   "lstm_lm",
                                   "resnet50",
                                   "efficientnet_b0",
                                   "bert_small",
                                   "resnet18",
                                   "mobilenet_v2",
                                   "squeezenet",
                                   "lenet5",
                                   "mlp",
                                   "mobilenet_v3_small"};

std::string ModelFile(const std::string& name, const std::string& ending) {
  return hone::testing::ModelsDir() + "/" + name + ending;
}

/// Removes a file at the end.
class FileRemover {
 public:
  explicit FileRemover(std::string path) : path_(std::move(path)) {}
  ~FileRemover() { std::remove(path_.c_str()); }
  FileRemover(const FileRemover&) = delete;
  FileRemover& operator=(const FileRemover&) = delete;

 private:
  std::string path_;
};

/// Compiles a model for this host, two threads, and writes its package.
absl::Status CompileTo(const std::string& model, const std::string& package) {
  const SystemMonotonicClock clock;
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, graph::ImportOnnxFile(model, {}));
  measure::BuilderOptions options;
  options.program = hone::testing::BuildDir() + "/libexec/hone/hone-builder";
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  options.address_space_bytes.reset();
#endif
  measure::BuilderClient builder(options, clock);
  compiler::DefaultTraceSource traces;
  const std::string target = ir::ResolveNative("cpu:native", 2);
  HONE_ASSIGN_OR_RETURN(
      const compiler::CompiledModel compiled,
      compiler::CompileModel(std::move(graph), {.target = target}, builder, traces));
  return ToAbsl(runtime::WritePackage(compiled.package, package));
}

/// Other values within every input's range: the elements from last to first.
NamedTensors Reversed(const NamedTensors& inputs) {
  NamedTensors result;
  for (const auto& [name, tensor] : inputs) {
    const size_t width = static_cast<size_t>(ir::SizeOf(tensor.type.dtype));
    std::vector<std::byte> bytes(tensor.bytes.size());
    for (size_t at = 0; at < bytes.size(); at += width) {
      std::memcpy(bytes.data() + bytes.size() - width - at, tensor.bytes.data() + at, width);
    }
    result.emplace_back(name, *graph::MakeConstant(tensor.type, std::move(bytes)));
  }
  return result;
}

/// The file's arrays in the plan's order.
NamedTensors InPlanOrder(const NamedTensors& file, const std::vector<ir::PlanValue>& values) {
  NamedTensors ordered;
  for (const ir::PlanValue& value : values) {
    const graph::TensorData* tensor = FindTensor(file, value.name);
    EXPECT_NE(tensor, nullptr) << "no value for input " << value.name;
    if (tensor != nullptr) ordered.emplace_back(value.name, *tensor);
  }
  return ordered;
}

std::vector<std::vector<std::byte>> Bytes(const NamedTensors& tensors) {
  std::vector<std::vector<std::byte>> bytes;
  for (const auto& [name, tensor] : tensors) {
    bytes.emplace_back(tensor.bytes.begin(), tensor.bytes.end());
  }
  return bytes;
}

/// README.md's tolerance, which is the default one.
void ExpectClose(const NamedTensors& outputs, const NamedTensors& expected) {
  ASSERT_EQ(outputs.size(), expected.size());
  for (const auto& [name, right] : expected) {
    const graph::TensorData* output = FindTensor(outputs, name);
    ASSERT_NE(output, nullptr) << "the model gives no " << name;
    ASSERT_EQ(graph::ToText(output->type), graph::ToText(right.type)) << name;
    const Comparison c = client::CompareTensors(*output, right, {});
    EXPECT_EQ(c.differing, 0) << name << ": of " << c.elements << "; the worst is "
                              << client::IndexText(c.worst, right.type.shape) << ": "
                              << c.worst_value << " instead of " << c.worst_expected;
  }
}

class ModelsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ModelsTest, GivesTheOutputsOfOnnxRuntime) {
  const std::string name = GetParam();
  const std::string model = ModelFile(name, ".onnx");
  if (!std::filesystem::exists(model)) {
    GTEST_SKIP() << "no filled models; run scripts/models.sh, as scripts/test.sh does";
  }
  const auto given_file = client::ReadNpz(ModelFile(name, ".inputs.npz"));
  const auto expected = client::ReadNpz(ModelFile(name, ".expected.npz"));
  ASSERT_TRUE(given_file.ok()) << given_file.status();
  ASSERT_TRUE(expected.ok()) << expected.status();

  const std::string package = hone::testing::BuildDir() + "/tests/models." + name + ".hone";
  const FileRemover remover(package);
  const absl::Status compiled = CompileTo(model, package);
  ASSERT_TRUE(compiled.ok()) << compiled;
  auto executable = runtime::Executable::Open(package, {});
  ASSERT_TRUE(executable.ok()) << executable.status().ToString();
  auto session = ModelSession::Create(*executable, {.threads = 2, .poison = true});
  ASSERT_TRUE(session.ok()) << session.status();

  // Nothing may stay from one run to the next: not in the poisoned memory, nor elsewhere.
  const NamedTensors given = InPlanOrder(*given_file, session->plan().inputs);
  ASSERT_FALSE(HasFailure());
  const auto run = [&](const NamedTensors& inputs) {
    session->SetInputs(inputs);
    const absl::Status status = session->Run();
    EXPECT_TRUE(status.ok()) << status;
    return session->Outputs();
  };
  ExpectClose(run(given), *expected);
  const auto first = Bytes(session->Outputs());
  const auto other = Bytes(run(Reversed(given)));
  EXPECT_NE(other, first) << "the outputs do not depend on the inputs";
  ExpectClose(run(given), *expected);
  EXPECT_EQ(Bytes(session->Outputs()), first) << "two runs on equal inputs differ";
}

INSTANTIATE_TEST_SUITE_P(Skeletons, ModelsTest, ::testing::ValuesIn(kModels),
                         [](const auto& instance) { return std::string(instance.param); });

// A model that is added must be run too.
TEST(ModelsListTest, NamesEverySkeleton) {
  std::vector<std::string> skeletons, named(std::begin(kModels), std::end(kModels));
  for (const auto& file : std::filesystem::directory_iterator(hone::testing::SourceDir() +
                                                              "/tests/models/skeletons")) {
    skeletons.push_back(file.path().stem().string());
  }
  std::sort(skeletons.begin(), skeletons.end());
  std::sort(named.begin(), named.end());
  EXPECT_EQ(named, skeletons);
}

}  // namespace
}  // namespace hone
