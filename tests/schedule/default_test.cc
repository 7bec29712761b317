#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "ir/stmt.h"
#include "schedule/lower.h"
#include "schedule/space.h"
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

/// `count` points of a Space, the default's first.
std::vector<uint64_t> SomePoints(const Space& space, Random* random, int count) {
  std::vector<uint64_t> ids = {space.DefaultId()};
  for (int tries = 0; tries < 40 && static_cast<int>(ids.size()) < count; ++tries) {
    const uint64_t id = random->Below(space.product());
    if (space.Admits(id)) ids.push_back(id);
  }
  return ids;
}

TEST(SpaceTraces, OfRandomWorkloadsEqualTheInterpreter) {
  std::cout << "seed " << kSeed << "\n";
  Random seeds(kSeed);
  std::map<std::string, int> sketches;
  int compared = 0;
  for (int k = 0; k < kWorkloads; ++k) {
    const uint64_t seed = seeds.Next();
    Random random(seed);
    const RandomWorkload made = MakeWorkload(random, k % 3 == 0 ? "conv3x3" : "");
    const ir::Workload workload = WorkloadOf(made.text);
    CheckOptions options;
    options.seed = seed;
    options.slack = 2e-5;  // Winograd may be among them
    options.target = k % 2 == 0 ? "cpu:avx2,threads=2" : "cpu:avx512,threads=1";
    const Space space(workload, TargetOf(options.target), ir::AccuracyClass::kDefault);
    for (const uint64_t id : SomePoints(space, &random, 4)) {
      const auto trace = space.TraceOf(id);
      const std::string& sketch = space.sketches()[static_cast<size_t>(space.At(id).sketch)].name;
      ASSERT_TRUE(trace.ok()) << trace.status() << "\n" << sketch << "\n" << made.text;
      options.compile = compared % 8 == 0;
      const CheckResult result = CheckTrace(workload, *trace, options);
      ASSERT_EQ(result.agreement, Agreement::kEqual)
          << "seed " << seed << ", " << made.family << ", " << sketch << ", " << options.target
          << ": " << result.why << "\n"
          << made.text << "\n"
          << ToText(*trace) << "\n"
          << ir::ToText(result.lowered.nest);
      ++sketches[sketch];
      ++compared;
    }
  }
  for (const auto& [sketch, count] : sketches) std::cout << "  " << sketch << ": " << count << "\n";
  EXPECT_GE(compared, 2 * kWorkloads);
}

}  // namespace
}  // namespace hone::schedule
