#include <algorithm>
#include <map>
#include <regex>
#include <sstream>

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "codegen/codegen.h"
#include "ir/cpu/cpu_target.h"
#include "tests/codegen/gemm_nest.h"

namespace hone::codegen {
namespace {

std::vector<float> RandomValues(int64_t size, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(static_cast<size_t>(size));
  for (float& v : values) v = static_cast<float>(2 * random.Uniform() - 1);
  return values;
}

/// Lines of every innermost loop: from a label to the first backward jump to it.
std::vector<std::vector<std::string>> InnermostLoops(const std::string& assembly) {
  std::vector<std::string> lines;
  std::istringstream stream(assembly);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::map<std::string, size_t> labels;
  std::vector<std::vector<std::string>> loops;
  const std::regex label(R"(^(\.L\w+):)"), jump(R"(^\s+j\w+\s+(\.L\w+))");
  size_t last_end = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    std::smatch match;
    if (std::regex_search(lines[i], match, label)) labels[match[1]] = i;
    if (!std::regex_search(lines[i], match, jump)) continue;
    const auto target = labels.find(match[1]);
    if (target == labels.end() || target->second < last_end) continue;
    loops.emplace_back(lines.begin() + static_cast<long>(target->second),
                       lines.begin() + static_cast<long>(i));
    last_end = i;
  }
  return loops;
}

size_t Count(const std::vector<std::string>& lines, const std::string& pattern) {
  const std::regex regex(pattern);
  return static_cast<size_t>(
      std::count_if(lines.begin(), lines.end(),
                    [&](const std::string& line) { return std::regex_search(line, regex); }));
}

GemmShape ShapeFor(const ir::Target& target) {
  if (target.As<ir::CpuTarget>().isa == ir::Isa::kAvx512)
    return {.m = 18, .n = 128, .k = 37, .mr = 6, .nr = 64, .lanes = 16};
  return {.m = 18, .n = 48, .k = 37, .mr = 6, .nr = 16, .lanes = 8};
}

TEST(GemmTest, TileEqualsTheProductInDouble) {
  for (const ir::Target& target : RunnableTargets()) {
    const GemmShape s = ShapeFor(target);
    const Kernel kernel(GemmNest(s), target);
    std::vector<float> a = RandomValues(s.m * s.k, 1);
    std::vector<float> b = RandomValues(s.k * s.n, 2);
    std::vector<float> bias = RandomValues(s.n, 3);
    std::vector<float> c(static_cast<size_t>(s.m * s.n), -7);
    ASSERT_EQ(kernel.Run("gemm", {a.data(), b.data(), bias.data(), c.data()}, 0, s.n / s.nr), 0);
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < s.k; ++k) {
          sum += static_cast<double>(a[static_cast<size_t>(i * s.k + k)]) *
                 b[static_cast<size_t>((j / s.nr * s.k + k) * s.nr + j % s.nr)];
        }
        const double expected = std::max(0.0, sum + bias[static_cast<size_t>(j)]);
        ASSERT_NEAR(c[static_cast<size_t>(i * s.n + j)], expected, 1e-5)
            << target.text << " " << i << "," << j;
      }
    }
  }
}

TEST(GemmTest, InnerLoopIsOneFmaAnAccumulatorWithoutStackStores) {
  for (const char* isa : {"avx2", "avx512"}) {
    const ir::Target target = MakeTarget(isa);
    const GemmShape s = ShapeFor(target);
    const ir::LoopNest nest = GemmNest(s);
    // LLD resets LLVM's options, and with them loop-strength reduction.
    const auto object = CompileToObject({&nest}, target);
    ASSERT_TRUE(object.ok()) << object.status();
    ASSERT_TRUE(LinkShared({*object}).ok());
    const auto text = Assembly({&nest}, target);
    ASSERT_TRUE(text.ok()) << text.status();
    const auto loops = InnermostLoops(*text);
    const auto accumulators = static_cast<size_t>(s.mr * s.nr / s.lanes);
    bool found = false;
    for (const auto& loop : loops) {
      if (Count(loop, "vfn?m") == 0) continue;
      found = true;
      EXPECT_EQ(Count(loop, "vfmadd...ps"), accumulators) << *text;
      EXPECT_EQ(Count(loop, target.As<ir::CpuTarget>().isa == ir::Isa::kAvx512 ? "vfmadd.*zmm"
                                                                               : "vfmadd.*ymm"),
                accumulators);
      EXPECT_EQ(Count(loop, R"(\[rsp)"), 0U) << *text;
      EXPECT_EQ(Count(loop, R"(^\s+(inc|add|sub)\s)"), 1U) << "one counter\n" << *text;
    }
    EXPECT_TRUE(found) << *text;
  }
}

}  // namespace
}  // namespace hone::codegen
