#include "tests/runtime/test_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <sstream>

#include "base/core/random.h"
#include "base/versions.h"

extern "C" void hone_context_options_init(void* options);

namespace hone::runtime::testing {
namespace {

using ir::ArtifactBuffer;
using ir::DType;
using ir::PlanBufferKind;

// Offsets in the constants and the arena: multiples of 64 bytes.
constexpr int64_t kWOffset = 0;
constexpr int64_t kTableOffset = 192;
constexpr int64_t kConstantBytes = 192 + 256;

ArtifactBuffer F32(std::vector<int64_t> shape) {
  const int64_t count =
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  return {.dtype = DType::kF32, .shape = std::move(shape), .bytes = 4 * count};
}
ArtifactBuffer I64(std::vector<int64_t> shape) {
  ArtifactBuffer buffer = F32(std::move(shape));
  buffer.dtype = DType::kI64;
  buffer.bytes *= 2;
  return buffer;
}

ir::Artifact BaseKernel(const std::string& target, char hash_digit) {
  ir::Artifact kernel;
  kernel.target = target;
  kernel.builder = kBuilderVersion;
  kernel.workload_hash = std::string(32, hash_digit);
  kernel.trace_hash = std::string(32, 'f');
  return kernel;
}

std::vector<ir::Artifact> Kernels(const std::string& target, int threads) {
  ir::Artifact dense = BaseKernel(target, '1');
  dense.phases = {{"test_dense", 5, 4 * kOut, threads}};
  dense.steps = {{0, 1, 1}};
  dense.inputs = {F32({5, 7})};
  dense.constants = {F32({7, 6})};  // the prologue's, not in the package
  dense.prologue = {F32({7, 6})};
  dense.outputs = {F32({5, 6})};

  ir::Artifact embed = BaseKernel(target, '2');
  embed.phases = {{"test_embed", 5, 0, threads}};
  embed.steps = {{0, 1, 1}};
  embed.inputs = {F32({5, 6}), I64({5})};
  embed.constants = {F32({9, 6})};
  embed.outputs = {F32({5, 6})};

  ir::Artifact scan = BaseKernel(target, '3');
  scan.phases = {{"test_scan_start", 6, 0, threads},
                 {"test_scan_step", 6, 0, threads},
                 {"test_scan_end", 6, 0, 1}};
  scan.steps = {{0, 1, 1}, {1, 1, 5}, {2, 1, 1}};
  scan.inputs = {F32({5, 6})};
  scan.outputs = {F32({6})};
  scan.workspace = {F32({6, 6})};
  return {dense, embed, scan};
}

ir::PlanStep KernelStep(int32_t kernel, std::vector<int32_t> buffers, int threads) {
  ir::PlanStep step;
  step.kernel = kernel;
  step.buffers = std::move(buffers);
  step.threads = threads;
  return step;
}

ir::Plan MakePlan(const std::string& target, int threads) {
  ir::Plan plan;
  plan.inputs = {{"x", DType::kF32, {5, 7}}, {"ids", DType::kI64, {5}}};
  plan.outputs = {{"z", DType::kF32, {5, 6}},
                  {"last", DType::kF32, {6}},
                  {"top", DType::kF32, {5, 2}},
                  {"places", DType::kI64, {5, 2}}};
  plan.arena_bytes = 128 + 192;
  plan.buffers = {
      {PlanBufferKind::kInput, 0, 140},           {PlanBufferKind::kInput, 1, 40},
      {PlanBufferKind::kConstant, kWOffset, 168}, {PlanBufferKind::kConstant, kTableOffset, 216},
      {PlanBufferKind::kArena, 0, 120},           {PlanBufferKind::kOutput, 0, 120},
      {PlanBufferKind::kArena, 128, 144},         {PlanBufferKind::kOutput, 1, 24},
      {PlanBufferKind::kOutput, 2, 40},           {PlanBufferKind::kOutput, 3, 80}};
  plan.kernels = Kernels(target, threads);
  plan.steps = {KernelStep(0, {kX, ir::kNoPlanBuffer, kW, kY}, threads),
                KernelStep(1, {kY, kIds, kTableBuffer, kZ}, threads),
                KernelStep(2, {kZ, kLast, kCarried}, threads)};
  ir::PlanStep top;
  top.kind = ir::PlanStepKind::kExtern;
  top.extern_name = "TopK";
  top.extern_attributes = {1, 1, 1};
  top.extern_inputs = {F32({5, 6})};
  top.extern_outputs = {F32({5, 2}), I64({5, 2})};
  top.buffers = {kZ, kTopValues, kPlaces};
  plan.steps.push_back(top);
  return plan;
}

std::vector<float> MakeConstants() {
  std::vector<float> constants(kConstantBytes / 4);
  Random random(17);
  for (float& value : constants) value = static_cast<float>(random.Between(-8, 8)) / 4;
  return constants;
}

}  // namespace

TestModel MakeTestModel(const std::string& target, int threads) {
  TestModel model;
  model.constants = MakeConstants();
  model.code = ReadFile(HONE_TEST_KERNELS);
  Package& package = model.package;
  package.info.target = target;
  package.info.device_class = "a test's";
  package.info.program = kProgramVersion;
  package.info.kernels = {
      {"exact", "0123456789abcdef0123456789abcdef", "aa", "matmul 5x6", {420}, 428},
      {"nearest", "fedcba9876543210fedcba9876543210", "bb", "gather + add 5x6", {30}, 496},
      {"default", "", "", "scan 6", {60}, 144}};
  package.plan = MakePlan(target, threads);
  package.constants = std::as_bytes(std::span(model.constants));
  package.code = std::as_bytes(std::span(model.code.data(), model.code.size()));
  return model;
}

TestModel MakeLoopedTestModel(int64_t images) {
  TestModel model = MakeTestModel();
  ir::Plan& plan = model.package.plan;
  for (auto* const values : {&plan.inputs, &plan.outputs}) {
    for (ir::PlanValue& value : *values) value.shape[0] *= images;
  }
  for (ir::PlanBuffer& buffer : plan.buffers) {
    const bool io = buffer.kind == PlanBufferKind::kInput || buffer.kind == PlanBufferKind::kOutput;
    if (io) buffer.advance_bytes = buffer.bytes;
  }
  // Each repeat has its own place for what its first step leaves.
  plan.buffers[kY].advance_bytes = 384;
  plan.arena_bytes += images * 384;
  plan.loops = {{0, static_cast<int32_t>(plan.steps.size()), images}};
  return model;
}

std::string MakeTestPackage(const std::string& target, int threads) {
  const TestModel model = MakeTestModel(target, threads);
  const Result<std::string> bytes = SerializePackage(model.package);
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  return bytes.ok() ? *bytes : "";
}

TestInputs MakeInputs(uint64_t seed) {
  TestInputs inputs;
  Random random(seed);
  for (size_t i = 0; i < kRows * kIn; ++i) {
    inputs.x.push_back(static_cast<float>(random.Between(-64, 64)) / 8);
  }
  for (size_t i = 0; i < kRows; ++i) {
    inputs.ids.push_back(static_cast<int64_t>(random.Below(kTable)));
  }
  return inputs;
}

// All values are small multiples of powers of two: sums are exact in any order.
TestOutputs Expected(const TestInputs& inputs) {
  const std::vector<float> constants = MakeConstants();
  const float* w = constants.data() + kWOffset / 4;
  const float* table = constants.data() + kTableOffset / 4;
  TestOutputs outputs = EmptyOutputs();
  std::vector<float> carried(kOut, 1);
  for (size_t row = 0; row < kRows; ++row) {
    std::vector<float> next(kOut);
    for (size_t j = 0; j < kOut; ++j) {
      float sum = table[static_cast<size_t>(inputs.ids[row]) * kOut + j];
      for (size_t k = 0; k < kIn; ++k) sum += inputs.x[row * kIn + k] * w[k * kOut + j];
      outputs.z[row * kOut + j] = sum;
      next[j] = 0.5F * carried[(j + 1) % kOut] + sum;
    }
    carried = next;
    std::vector<std::pair<float, int64_t>> sorted;  // descending value, ascending place
    for (size_t j = 0; j < kOut; ++j) {
      sorted.emplace_back(-outputs.z[row * kOut + j], static_cast<int64_t>(j));
    }
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < kTop; ++i) {
      outputs.top[row * kTop + i] = -sorted[i].first;
      outputs.places[row * kTop + i] = sorted[i].second;
    }
  }
  outputs.last = carried;
  return outputs;
}

TestOutputs EmptyOutputs() {
  TestOutputs outputs;
  outputs.z.resize(kRows * kOut);
  outputs.last.resize(kOut);
  outputs.top.resize(kRows * kTop);
  outputs.places.resize(kRows * kTop);
  return outputs;
}

void FillOlderContextOptions(void* options) { ::hone_context_options_init(options); }

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << "cannot read " << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace hone::runtime::testing
