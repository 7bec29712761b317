#include <map>
#include <string>

#include "gtest/gtest.h"

#include "ir/stmt.h"
#include "tests/schedule/examples.h"
#include "tests/schedule/nest_check.h"

// The Workloads and Traces of docs/decisions/0002-traces-of-the-lowering.md: interpreter, loop nest
// and code agree on them.
namespace hone::schedule {
namespace {

class StepTwo : public ::testing::TestWithParam<Example> {};

TEST_P(StepTwo, InterpreterLoopNestAndCodeAgree) {
  const Example& e = GetParam();
  CheckOptions options;
  // F(4×4) has another error than the sum it replaces: about 1e-5 of the largest output (knowledge
  // of its class), here 32 times the unit roundoff and more.
  if (e.section == "winograd") options.slack = e.name.rfind("f4", 0) == 0 ? 2e-5 : 2e-6;
  if (e.section == "concat") {
    // Two inputs, then two outputs in rows of 22 elements: the second begins 6 elements later.
    options.binding.buffers.resize(4);
    options.binding.buffers[2] = {.strides = {22, 1}, .offset = 0, .alignment = 8};
    options.binding.buffers[3] = {.strides = {22, 1}, .offset = 6, .alignment = 8};
  }
  const bool gpu = e.section == "gpu_gemm";
  for (const char* target : {"cpu:avx2,threads=2", "cpu:avx512,threads=2"}) {
    options.target = target;
    options.compile = !gpu;
    const CheckResult result = CheckTexts(e.workload, e.trace, options);
    EXPECT_EQ(result.agreement, Agreement::kEqual) << target << ": " << result.why << "\n"
                                                   << ir::ToText(result.lowered.nest);
    if (gpu || HasFailure()) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Page, StepTwo, ::testing::ValuesIn(ReadExamples()),
                         [](const auto& example) {
                           return example.param.section + "_" + example.param.name;
                         });

TEST(StepTwoPage, HoldsEverySection) {
  std::map<std::string, int> traces;
  for (const Example& e : ReadExamples()) ++traces[e.section];
  const std::map<std::string, int> expected = {
      {"gemm", 2},     {"gemm_tails", 2},      {"conv3x3", 4},     {"depthwise3x3", 2},
      {"winograd", 4}, {"gemm_layer_norm", 2}, {"softmax_197", 2}, {"online_softmax_attention", 2},
      {"lstm", 2},     {"split_k", 1},         {"concat", 1},      {"u8_s8_requantise", 2},
      {"gpu_gemm", 1}};
  EXPECT_EQ(traces, expected);
}

}  // namespace
}  // namespace hone::schedule
