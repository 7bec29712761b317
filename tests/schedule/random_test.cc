#include "base/core/random.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "ir/stmt.h"
#include "tests/codegen/kernel.h"
#include "tests/schedule/in_memory.h"
#include "tests/schedule/nest_check.h"
#include "tests/schedule/random_trace.h"
#include "tests/schedule/random_workload.h"

// Random legal Traces on random small Workloads equal the interpreter.
namespace hone::schedule {
namespace {

/// Two for each case: shards of CTest share the cases.
constexpr uint64_t kSeeds[][2] = {{11, 222}, {3333, 44444}, {555555, 6666666}, {777, 88888}};
constexpr int kTracesPerSeed = 500;  ///< accepted ones
constexpr int kCompileEvery = 10;

struct Tally {
  int accepted = 0, rejected = 0, with_tail_and_stages = 0, compiled = 0, refused = 0;
  std::map<std::string, int> uses;     ///< Traces that use it
  std::map<std::string, int> reasons;  ///< of rejections, names and numbers left out
  std::map<std::string, int> families, dtypes;
};

/// A reason without the names and numbers in it.
std::string KindOfReason(const std::string& why) {
  std::string kind;
  for (size_t i = 0; i < why.size(); ++i) {
    const bool name =
        (why[i] == 's' || why[i] == 'x' || std::isdigit(static_cast<unsigned char>(why[i])) != 0) &&
        (i == 0 || std::isalpha(static_cast<unsigned char>(why[i - 1])) == 0);
    size_t end = i;
    while (name && end < why.size() &&
           (std::isalnum(static_cast<unsigned char>(why[end])) != 0 || why[end] == '.'))
      ++end;
    if (end > i && why.substr(i, end - i).find_first_of("0123456789") != std::string::npos) {
      kind += "…";
      i = end - 1;
    } else {
      kind += why[i];
    }
  }
  return kind;
}

/// Rows further apart than they are long and an offset, as the memory plan gives them for a
/// concatenation.
Binding RandomBinding(const ir::Workload& w, Random* random) {
  Binding binding;
  for (const auto& ids : {w.Inputs(), w.Constants(), w.Outputs()}) {
    for (int id : ids) {
      const ir::Tensor& t = w.tensors[static_cast<size_t>(id)];
      const int producer = w.Producer(id);
      const bool tuple =
          producer >= 0 && w.stages[static_cast<size_t>(producer)].results.size() > 1;
      BufferBinding b;
      if (!tuple && random->Chance(0.5)) {
        b.offset = random->Between(0, 3);
        b.alignment = ir::SizeOf(t.dtype);
        b.strides.resize(t.shape.size());
        int64_t stride = 1;
        for (size_t d = t.shape.size(); d-- > 0; stride *= t.shape[d] + random->Between(0, 2))
          b.strides[d] = stride;
      }
      binding.buffers.push_back(std::move(b));
    }
  }
  return binding;
}

void CheckOne(uint64_t seed, Tally* tally) {
  Random random(seed);
  const uint64_t draw = random.Below(100);
  const std::string kind = draw < 6    ? "winograd"
                           : draw < 14 ? "grid"
                           : draw < 28 ? "online_softmax"
                                       : "";
  const RandomWorkload made = MakeWorkload(random, kind == "winograd"         ? "conv3x3"
                                                   : kind == "online_softmax" ? "attention"
                                                                              : "");
  const ir::Workload workload = WorkloadOf(made.text);
  TraceUse use;
  Trace trace = MakeTrace(workload, random, kind, &use);
  CheckOptions options;
  options.seed = seed;
  options.target = seed % 2 == 0 ? "cpu:avx2,threads=2" : "cpu:avx512,threads=2";
  options.compile = tally->accepted % kCompileEvery == 0 && !use.counts.contains("bind");
  if (use.counts.contains("algorithm")) options.slack = 2e-5;
  if (options.compile && random.Chance(0.7)) trace = InMemory(trace);
  if (random.Chance(0.15)) {
    options.binding = RandomBinding(workload, &random);
    ++use.counts["binding"];
  }
  std::string why;
  options.compile = options.compile && ir::HostCanRun(TargetOf(options.target), &why);
  const CheckResult result = CheckTrace(workload, trace, options);
  if (result.agreement == Agreement::kIllegal) {
    ++tally->rejected;
    ++tally->reasons[KindOfReason(result.why)];
    return;
  }
  ++tally->accepted;
  ++tally->families[made.family];
  ++tally->dtypes[made.dtype];
  tally->compiled += options.compile && result.agreement == Agreement::kEqual ? 1 : 0;
  tally->refused += result.agreement == Agreement::kRefused ? 1 : 0;
  if (result.agreement == Agreement::kRefused)
    ++tally->reasons["code: " + KindOfReason(result.why)];
  tally->with_tail_and_stages += use.has_tail && use.stages >= 3 ? 1 : 0;
  for (const auto& [what, count] : use.counts) ++tally->uses[what];
  if (result.agreement != Agreement::kDifferent) return;
  ADD_FAILURE() << "seed " << seed << " (" << made.family << "): " << result.why << "\n"
                << made.text << "\n"
                << ToText(trace) << "\n"
                << ir::ToText(result.lowered.nest);
}

void Print(const Tally& t) {
  std::cout << t.accepted << " traces accepted, " << t.rejected << " rejected; "
            << t.with_tail_and_stages << " with a tail and three or more stages; " << t.compiled
            << " also as code, " << t.refused << " refused by the code generator\n";
  for (const auto& [what, count] : t.uses) std::cout << "  " << what << ": " << count << "\n";
  for (const auto& [what, count] : t.families)
    std::cout << "  family " << what << ": " << count << "\n";
  for (const auto& [what, count] : t.dtypes)
    std::cout << "  dtype " << what << ": " << count << "\n";
  for (const auto& [why, count] : t.reasons)
    std::cout << "  not taken " << count << " times: " << why << "\n";
}

class RandomTraces : public ::testing::TestWithParam<int> {};

TEST_P(RandomTraces, EqualTheInterpreter) {
  Tally tally;
  for (uint64_t seed : kSeeds[GetParam()]) {
    std::cout << "seed " << seed << "\n";
    Random seeds(seed);
    const int until = tally.accepted + kTracesPerSeed;
    for (int tries = 0; tally.accepted < until && tries < 4 * kTracesPerSeed; ++tries) {
      CheckOne(seeds.Next(), &tally);
      if (HasFailure()) return Print(tally);
    }
  }
  Print(tally);
  EXPECT_GE(tally.accepted, 750);
  EXPECT_GE(tally.accepted, 2 * tally.rejected);
  EXPECT_GE(2 * tally.with_tail_and_stages, tally.accepted);
  for (const char* what :
       {"algorithm",     "inline",         "compute_at",   "split",          "partition",
        "reorder",       "fuse",           "cache_read",   "cache_write",    "pack",
        "rfactor",       "vectorize",      "unroll",       "parallel",       "align",
        "bind",          "tail exact",     "tail mask",    "tail two_sizes", "place root",
        "place memory",  "place register", "place shared", "binding",        "prefetch",
        "online_softmax"}) {
    EXPECT_GE(tally.uses[what], 25) << what;
  }
  for (const char* dtype : {"f32", "f64", "f16", "bf16", "i32"})
    EXPECT_GE(tally.dtypes[dtype], 15) << dtype;
  // One in kCompileEvery is to be code as well, of which the code generator refuses some, on what
  // this machine can run of the two targets.
  const auto targets = static_cast<int>(codegen::RunnableTargets().size());
  EXPECT_GE(tally.compiled, tally.accepted * targets / 40);
  EXPECT_LE(2 * tally.refused, tally.compiled);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTraces, ::testing::Range(0, 4));

}  // namespace
}  // namespace hone::schedule
