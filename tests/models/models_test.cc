// The networks of tests/models: compiled with the default schedules, eight of them with the Traces
// kept in traces/, too; run, compared with what ONNX Runtime computed.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "client/compare.h"
#include "client/folder_trace_source.h"
#include "client/model_session.h"
#include "client/npz.h"
#include "client/precision_error.h"
#include "compiler/compile_model.h"
#include "graph/onnx_import/import.h"
#include "ir/kind_facts.h"
#include "ir/target.h"
#include "measure/builder_client.h"
#include "runtime/executable.h"
#include "tests/models/batch_graph.h"
#include "tests/models/networks.h"
#include "tests/test_paths.h"

namespace hone {
namespace {

using client::Comparison;
using client::FindTensor;
using client::ModelSession;
using client::NamedTensors;

using testing::kModels;
using testing::kNotFilled;

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

/// Those with kept Traces: scripts/refresh_traces.sh has the same list.
constexpr const char* kModelsWithTraces[] = {"mlp",          "lenet5",   "lstm_lm",    "squeezenet",
                                             "mobilenet_v2", "resnet18", "bert_small", "vgg16"};

/// What the Traces are kept for: the grouping, so the kernels' hashes, depend on it.
constexpr const char* kTraceTarget = "cpu:avx512,threads=2";

constexpr const char* kHowToRefresh =
    "the kept Traces do not fit the kernels any more; run: scripts/refresh_traces.sh";

std::string TracesFolder() { return hone::testing::SourceDir() + "/tests/models/traces"; }

/// traces/kept.txt: the workload hashes of each model's kernels with kept Traces.
std::map<std::string, std::set<std::string>> KeptHashes() {
  std::map<std::string, std::set<std::string>> kept;
  const auto text = ReadFile(TracesFolder() + "/kept.txt");
  EXPECT_TRUE(text.ok()) << text.status();
  std::istringstream in(text.ok() ? *text : "");
  for (std::string model, hash; in >> model >> hash;) kept[model].insert(hash);
  return kept;
}

/// Remembers which kernels had a kept Trace.
class KeptTraceSource final : public compiler::TraceSource {
 public:
  absl::StatusOr<compiler::FoundTrace> Find(const ir::Workload& workload, const std::string& hash,
                                            const ir::Target& target) override {
    auto trace = folder_.Find(workload, hash, target);
    if (trace.ok() && trace->rung == "exact") used_.insert(hash);
    return trace;
  }
  const std::set<std::string>& used() const { return used_; }

 private:
  client::FolderTraceSource folder_{TracesFolder()};
  std::set<std::string> used_;
};

/// Compiles a model and writes its package.
absl::Status CompileTo(graph::Graph graph, const compiler::CompileOptions& how,
                       compiler::TraceSource& traces, const std::string& package) {
  const SystemMonotonicClock clock;
  measure::BuilderOptions options;
  options.program = hone::testing::BuildDir() + "/libexec/hone/hone-builder";
  measure::BuilderClient builder(options, clock);
  HONE_ASSIGN_OR_RETURN(const compiler::CompiledModel compiled,
                        compiler::CompileModel(std::move(graph), how, builder, traces));
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

/// A model's package, removed at the end, and what it is to be run with.
struct Prepared {
  explicit Prepared(const std::string& file) : package(file), remover(file) {}
  std::string package;
  FileRemover remover;
  NamedTensors given, expected;
};

/// Whether the filled model is there; the test skips else.
bool IsFilled(const std::string& name) { return std::filesystem::exists(ModelFile(name, ".onnx")); }

void Prepare(const std::string& name, const std::string& target, compiler::TraceSource& traces,
             Prepared* prepared, ir::DType precision = ir::DType::kF32,
             compiler::CascadeRun cascades = compiler::CascadeRun::kAuto) {
  const auto given = client::ReadNpz(ModelFile(name, ".inputs.npz"));
  const auto expected = client::ReadNpz(ModelFile(name, ".expected.npz"));
  ASSERT_TRUE(given.ok()) << given.status();
  ASSERT_TRUE(expected.ok()) << expected.status();
  prepared->given = *given;
  prepared->expected = *expected;
  absl::StatusOr<graph::Graph> graph = graph::ImportOnnxFile(ModelFile(name, ".onnx"), {});
  ASSERT_TRUE(graph.ok()) << graph.status();
  graph->precision = precision;
  const absl::Status compiled = CompileTo(
      *std::move(graph), {.target = target, .cascades = cascades}, traces, prepared->package);
  ASSERT_TRUE(compiled.ok()) << compiled;
}

/// Nothing may stay from one run to the next: not in the poisoned memory, nor elsewhere.
void ExpectRuns(const Prepared& prepared) {
  auto executable = runtime::Executable::Open(prepared.package, {});
  ASSERT_TRUE(executable.ok()) << executable.status().ToString();
  auto session = ModelSession::Create(*executable, {.threads = 2, .poison = true});
  ASSERT_TRUE(session.ok()) << session.status();
  const NamedTensors given = InPlanOrder(prepared.given, session->plan().inputs);
  ASSERT_FALSE(::testing::Test::HasFailure());
  const auto run = [&](const NamedTensors& inputs) {
    session->SetInputs(inputs);
    const absl::Status status = session->Run();
    EXPECT_TRUE(status.ok()) << status;
    return session->Outputs();
  };
  ExpectClose(run(given), prepared.expected);
  const auto first = Bytes(session->Outputs());
  const auto other = Bytes(run(Reversed(given)));
  EXPECT_NE(other, first) << "the outputs do not depend on the inputs";
  ExpectClose(run(given), prepared.expected);
  EXPECT_EQ(Bytes(session->Outputs()), first) << "two runs on equal inputs differ";
}

class ModelsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ModelsTest, GivesTheOutputsOfOnnxRuntime) {
  const std::string name = GetParam();
  if (!IsFilled(name)) GTEST_SKIP() << kNotFilled;
  Prepared prepared(hone::testing::BuildDir() + "/tests/models." + name + ".hone");
  compiler::DefaultTraceSource traces;
  Prepare(name, ir::ResolveNative("cpu:native", 2), traces, &prepared);
  if (!HasFatalFailure()) ExpectRuns(prepared);
}

INSTANTIATE_TEST_SUITE_P(Skeletons, ModelsTest, ::testing::ValuesIn(kModels),
                         [](const auto& instance) { return std::string(instance.param); });

class CascadesTest : public ::testing::TestWithParam<const char*> {};

// Every chain of layers that can be in bands is.
TEST_P(CascadesTest, GiveTheOutputsOfOnnxRuntime) {
  const std::string name = GetParam();
  if (!IsFilled(name)) GTEST_SKIP() << kNotFilled;
  Prepared prepared(hone::testing::BuildDir() + "/tests/models.bands." + name + ".hone");
  compiler::DefaultTraceSource traces;
  Prepare(name, ir::ResolveNative("cpu:native", 2), traces, &prepared, ir::DType::kF32,
          compiler::CascadeRun::kAll);
  if (!HasFatalFailure()) ExpectRuns(prepared);
}

INSTANTIATE_TEST_SUITE_P(Skeletons, CascadesTest,
                         ::testing::Values("mobilenet_v2", "resnet18", "squeezenet", "bert_small"),
                         [](const auto& instance) { return std::string(instance.param); });

/// Image `k` of a batch: the elements of each input from another one on.
NamedTensors Image(const NamedTensors& inputs, int64_t k) {
  NamedTensors result;
  for (const auto& [name, tensor] : inputs) {
    std::vector<std::byte> bytes(tensor.bytes.begin(), tensor.bytes.end());
    const auto from = static_cast<size_t>(k * 4099 % tensor.type.NumElements());
    const auto width = static_cast<size_t>(ir::SizeOf(tensor.type.dtype));
    std::rotate(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(from * width),
                bytes.end());
    result.emplace_back(name, *graph::MakeConstant(tensor.type, std::move(bytes)));
  }
  return result;
}

/// Tensors of images as those of a batch.
NamedTensors Batched(const std::vector<NamedTensors>& images) {
  NamedTensors result;
  for (size_t t = 0; t < images.front().size(); ++t) {
    std::vector<std::byte> bytes;
    for (const NamedTensors& image : images) {
      const auto& part = image[t].second.bytes;
      bytes.insert(bytes.end(), part.begin(), part.end());
    }
    graph::TensorType type = images.front()[t].second.type;
    type.shape[0] *= static_cast<int64_t>(images.size());
    result.emplace_back(images.front()[t].first, *graph::MakeConstant(type, std::move(bytes)));
  }
  return result;
}

NamedTensors RunOnce(const std::string& package, const NamedTensors& inputs) {
  auto executable = runtime::Executable::Open(package, {});
  EXPECT_TRUE(executable.ok()) << executable.status().ToString();
  if (!executable.ok()) return {};
  auto session = ModelSession::Create(*executable, {.threads = 2, .poison = true});
  EXPECT_TRUE(session.ok()) << session.status();
  if (!session.ok()) return {};
  session->SetInputs(InPlanOrder(inputs, session->plan().inputs));
  const absl::Status status = session->Run();
  EXPECT_TRUE(status.ok()) << status;
  return Batched({session->Outputs()});  // which are the session's
}

struct Bf16Case {
  const char* model;
  const char* target;
  bool has_read_once;  ///< large weights that few rows read: bf16 on every target
};

class Bf16Test : public ::testing::TestWithParam<Bf16Case> {};

// Noise of at most a fiftieth of the signal (34 dB): OpenVINO's bf16 has 46 and 48 dB here. What
// cannot multiply bf16 widens it, and leaves products of many rows in f32.
TEST_P(Bf16Test, IsNearTheOutputsOfOnnxRuntime) {
  const auto& [name, wanted, has_read_once] = GetParam();
  if (!IsFilled(name)) GTEST_SKIP() << kNotFilled;
  Prepared prepared(hone::testing::BuildDir() + "/tests/models.bf16." + name + ".hone");
  compiler::DefaultTraceSource traces;
  ir::Target target;
  std::string why;
  ASSERT_TRUE(ir::ParseTarget(ir::ResolveNative(wanted, 2), &target, &why)) << why;
  Prepare(name, target.text, traces, &prepared, ir::DType::kBF16);
  ASSERT_FALSE(HasFatalFailure());
  const NamedTensors outputs = RunOnce(prepared.package, prepared.given);
  const auto error = client::ErrorOf(outputs, prepared.expected);
  ASSERT_TRUE(error.has_value());
  if (has_read_once || ir::Multiplies(target, ir::DType::kBF16)) {
    EXPECT_GT(error->noise_ppb, 100'000) << "nothing was rounded";
  } else {
    EXPECT_LT(error->noise_ppb, 100'000) << "its products are those of f32";
  }
  EXPECT_LT(error->noise_ppb, 20'000'000) << client::DecibelsOf(*error) << " dB";
}

INSTANTIATE_TEST_SUITE_P(Skeletons, Bf16Test,
                         ::testing::Values(Bf16Case{"bert_small", "cpu:native", false},
                                           Bf16Case{"resnet18", "cpu:native", true},
                                           Bf16Case{"lenet5", "cpu:avx2", true}),
                         [](const auto& instance) { return std::string(instance.param.model); });

struct BatchCase {
  const char* model;
  int64_t images;
};

class BatchesTest : public ::testing::TestWithParam<BatchCase> {};

// The first image as ONNX Runtime has it, the others as the network of one image gives them.
TEST_P(BatchesTest, GiveTheOutputsOfEachImage) {
  const auto& [name, images] = GetParam();
  if (!IsFilled(name)) GTEST_SKIP() << kNotFilled;
  const std::string file =
      hone::testing::BuildDir() + "/tests/models.b" + std::to_string(images) + "." + name;
  const std::string target = ir::ResolveNative("cpu:native", 2);
  Prepared one(file + ".1.hone");
  compiler::DefaultTraceSource traces;
  Prepare(name, target, traces, &one);
  ASSERT_FALSE(HasFatalFailure());
  std::vector<NamedTensors> inputs, outputs;
  for (int64_t k = 0; k < images; ++k) {
    inputs.push_back(Image(one.given, k));
    outputs.push_back(RunOnce(one.package, inputs.back()));
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
  ExpectClose(outputs.front(), one.expected);
  EXPECT_NE(Bytes(outputs[0]), Bytes(outputs[1])) << "the outputs do not depend on the inputs";

  auto imported = graph::ImportOnnxFile(ModelFile(name, ".onnx"), {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto batch = BatchOf(*std::move(imported), images);
  ASSERT_TRUE(batch.ok()) << batch.status();
  for (const auto run : {compiler::BatchRun::kTogether, compiler::BatchRun::kEach}) {
    SCOPED_TRACE(run == compiler::BatchRun::kEach ? "image by image" : "together");
    const std::string package = file + ".n.hone";
    const FileRemover remover(package);
    const absl::Status compiled =
        CompileTo(*batch, {.target = target, .batch = run}, traces, package);
    ASSERT_TRUE(compiled.ok()) << compiled;
    const NamedTensors results = RunOnce(package, Batched(inputs));
    ExpectClose(results, Batched(outputs));
    // The same kernels on the same images.
    if (run == compiler::BatchRun::kEach) {
      EXPECT_EQ(Bytes(results), Bytes(Batched(outputs)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Skeletons, BatchesTest,
    ::testing::Values(BatchCase{"lenet5", 8}, BatchCase{"mlp", 3}, BatchCase{"mobilenet_v2", 3},
                      BatchCase{"mobilenet_v3_small", 8}, BatchCase{"squeezenet", 8},
                      BatchCase{"resnet18", 2}, BatchCase{"efficientnet_b0", 2},
                      BatchCase{"densenet121", 3}, BatchCase{"unet", 2}, BatchCase{"bert_base", 2},
                      BatchCase{"bert_base", 3}, BatchCase{"segformer_b0", 2},
                      BatchCase{"segformer_b0", 3}),
    [](const auto& instance) {
      return instance.param.model + std::string("_") + std::to_string(instance.param.images);
    });

class KeptTracesTest : public ::testing::TestWithParam<const char*> {};

TEST_P(KeptTracesTest, GiveTheOutputsOfOnnxRuntime) {
  const std::string name = GetParam();
  if (!IsFilled(name)) GTEST_SKIP() << kNotFilled;
  if (ir::ResolveNative("cpu:native", 2).rfind("cpu:avx512", 0) != 0)
    GTEST_SKIP() << "the Traces are kept for AVX-512, which this machine does not have";
  Prepared prepared(hone::testing::BuildDir() + "/tests/models.traces." + name + ".hone");
  KeptTraceSource traces;
  Prepare(name, kTraceTarget, traces, &prepared);
  ASSERT_FALSE(HasFatalFailure()) << kHowToRefresh;
  EXPECT_EQ(traces.used(), KeptHashes()[name]) << kHowToRefresh;
  ExpectRuns(prepared);
}

INSTANTIATE_TEST_SUITE_P(Skeletons, KeptTracesTest, ::testing::ValuesIn(kModelsWithTraces),
                         [](const auto& instance) { return std::string(instance.param); });

// Every file belongs to a kernel of the eight models, and they have many forms.
TEST(KeptTracesListTest, NamesEveryFile) {
  std::set<std::string> files, named, models;
  std::string all;
  for (const auto& file : std::filesystem::directory_iterator(TracesFolder())) {
    if (file.path().extension() != ".trace") continue;
    files.insert(file.path().stem().string());
    const auto text = ReadFile(file.path().string());
    ASSERT_TRUE(text.ok()) << text.status();
    all += *text;
  }
  for (const auto& [model, hashes] : KeptHashes()) {
    models.insert(model);
    named.insert(hashes.begin(), hashes.end());
  }
  EXPECT_EQ(named, files) << kHowToRefresh;
  EXPECT_EQ(models,
            std::set<std::string>(std::begin(kModelsWithTraces), std::end(kModelsWithTraces)));
  for (const char* form :
       {"winograd, 2)", "winograd, 4)", "rfactor(", "partition(", "inline(s0)", "parallel(s0.",
        "compute_at(s0, ", "cache_write(", "two_sizes", "mask)"}) {
    EXPECT_NE(all.find(form), std::string::npos) << "no kept Trace has " << form;
  }
}

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
