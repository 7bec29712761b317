// How evenly the default schedules share the work of the networks among many threads: by counting
// iterations, nothing is run.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "compiler/extract_kernels.h"
#include "graph/onnx_import/import.h"
#include "ir/target.h"
#include "measure/builder_client.h"
#include "schedule/lower.h"
#include "tests/models/networks.h"
#include "tests/test_paths.h"

namespace hone {
namespace {

constexpr char kTarget[] = "cpu:avx512,threads=64";
/// A third of what the target computes at most, as compiler::WorthThreads has it.
constexpr double kShareOfMost = 1.0 / 3;

double Arithmetic(const ir::Expr& e) {
  const bool counts = e->kind == ir::ExprKind::kUnary || e->kind == ir::ExprKind::kBinary;
  double count = counts && ir::IsFloat(e->dtype) ? 1 : 0;
  for (const ir::Expr& arg : e->args) {
    if (e->kind != ir::ExprKind::kLoad) count += Arithmetic(arg);
  }
  return count;
}

/// Operations of a statement; a store is one at least.
double Operations(const ir::StmtNode& node) {
  double count = 0;
  for (const ir::Expr& value : node.values) {
    count += std::max(1.0, Arithmetic(value) + (node.combiner == ir::Combiner::kNone ? 0 : 1));
  }
  for (const ir::Stmt& inner : node.body) count += Operations(*inner);
  return node.kind == ir::StmtKind::kFor ? count * static_cast<double>(node.extent) : count;
}

/// Iterations of one parallel loop: how many, and the operations of each.
struct Iterations {
  int64_t count = 0;
  double operations = 0;
};

/// Those of the parallel loops beside each other, in order.
void FindIterations(const ir::StmtNode& node, std::vector<Iterations>* found) {
  if (node.kind == ir::StmtKind::kFor && node.loop == ir::LoopKind::kParallel) {
    found->push_back({node.extent, Operations(node) / static_cast<double>(node.extent)});
    return;
  }
  for (const ir::Stmt& inner : node.body) FindIterations(*inner, found);
}

/// The largest share over the mean where each thread has as many iterations that follow each other,
/// or one less: that much longer than needed the phase takes.
double LargestShare(const ir::Phase& phase, int64_t threads) {
  std::vector<Iterations> loops;
  FindIterations(*phase.body, &loops);
  if (phase.threads == 1 || loops.empty()) return static_cast<double>(threads);
  int64_t all = 0;
  for (const Iterations& loop : loops) all += loop.count;
  EXPECT_EQ(all, phase.parallel_extent);
  const auto before = [&loops](int64_t iteration) {
    double operations = 0;
    for (const Iterations& loop : loops) {
      operations += loop.operations * static_cast<double>(std::min(iteration, loop.count));
      iteration -= std::min(iteration, loop.count);
    }
    return operations;
  };
  double largest = 0;
  for (int64_t t = 0; t < threads; ++t) {
    largest = std::max(largest, before((t + 1) * all / threads) - before(t * all / threads));
  }
  return largest * static_cast<double>(threads) / before(all);
}

/// The share of each network's time that must be even.
constexpr double kShareAsked = 0.9;

class ManyThreadsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ManyThreadsTest, DefaultSchedulesShareTheWorkEvenly) {
  const std::string file = testing::ModelsDir() + "/" + GetParam() + ".onnx";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << testing::kNotFilled;
  ir::Target target;
  std::string error;
  ASSERT_TRUE(ir::ParseTarget(kTarget, &target, &error)) << error;
  absl::StatusOr<graph::Graph> graph = graph::ImportOnnxFile(file, {});
  ASSERT_TRUE(graph.ok()) << graph.status();
  const SystemMonotonicClock clock;
  measure::BuilderOptions options;
  options.program = testing::BuildDir() + "/libexec/hone/hone-builder";
  measure::BuilderClient builder(options, clock);
  const auto kernels = compiler::ExtractKernels(*std::move(graph), kTarget, builder);
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  const double flop_per_us = 1000 * ir::MostFlopPerNs(target) / target.threads * kShareOfMost;
  double all_us = 0, even_us = 0;
  for (const compiler::ModelKernel& kernel : *kernels) {
    const auto trace = schedule::DefaultTrace(kernel.workload, target);
    ASSERT_TRUE(trace.ok()) << trace.status();
    const auto lowered = schedule::LowerTrace(kernel.workload, *trace, target, {}, "k");
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    for (const ir::Phase& phase : lowered->nest.phases) {
      const double us = Operations(*phase.body) / flop_per_us;
      if (us < 50) continue;
      const double largest = LargestShare(phase, target.threads);
      all_us += kernel.count * us;
      if (largest <= 1.15) even_us += kernel.count * us;
      if (largest > 1.15) {
        std::printf("%s: %.0f us x %d, %ld iterations: %.2f of the mean\n", kernel.name.c_str(), us,
                    kernel.count, static_cast<long>(phase.parallel_extent), largest);
      }
    }
  }
  std::printf("%s: %.1f %% of %.0f us are even\n", GetParam(),
              all_us > 0 ? 100 * even_us / all_us : 100, all_us);
  EXPECT_GE(even_us, kShareAsked * all_us);
}

INSTANTIATE_TEST_SUITE_P(Skeletons, ManyThreadsTest, ::testing::ValuesIn(testing::kModels),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace hone
