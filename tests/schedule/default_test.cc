#include <iostream>
#include <map>
#include <string>

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "ir/stmt.h"
#include "schedule/lower.h"
#include "tests/schedule/nest_check.h"
#include "tests/schedule/random_workload.h"

// The default schedule of any Workload lowers, compiles and equals the interpreter.
namespace hone::schedule {
namespace {

constexpr uint64_t kSeed = 2024;
constexpr int kWorkloads = 240;

TEST(DefaultTraces, OfRandomWorkloadsEqualTheInterpreter) {
  std::cout << "seed " << kSeed << "\n";
  Random seeds(kSeed);
  std::map<std::string, int> families;
  for (int k = 0; k < kWorkloads; ++k) {
    const uint64_t seed = seeds.Next();
    Random random(seed);
    const RandomWorkload made = MakeWorkload(random);
    const ir::Workload workload = WorkloadOf(made.text);
    CheckOptions options;
    options.seed = seed;
    options.compile = true;
    options.target = k % 2 == 0 ? "cpu:avx2" : "cpu:avx512";
    options.target += random.Chance(0.5) ? ",threads=2" : ",threads=1";
    const auto trace = DefaultTrace(workload, TargetOf(options.target));
    ASSERT_TRUE(trace.ok()) << trace.status() << "\n" << made.text;
    const auto again = DefaultTrace(workload, TargetOf(options.target));
    EXPECT_EQ(*again, *trace) << "the same Workload and Target give the same Trace";
    const CheckResult result = CheckTrace(workload, *trace, options);
    ASSERT_EQ(result.agreement, Agreement::kEqual) << "seed " << seed << ", " << made.family << ", "
                                                   << options.target << ": " << result.why << "\n"
                                                   << made.text << "\n"
                                                   << ToText(*trace) << "\n"
                                                   << ir::ToText(result.lowered.nest);
    ++families[made.family];
  }
  EXPECT_GE(families.size(), 13U);
}

}  // namespace
}  // namespace hone::schedule
