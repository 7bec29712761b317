#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "graph/evaluator.h"
#include "graph/interpreter_evaluator.h"
#include "measure/builder_client.h"
#include "runtime/crew.h"

namespace hone::compiler {

/// From this many element-operations on a Workload is compiled instead of interpreted.
inline constexpr int64_t kCompileFromOperations = int64_t{1} << 16;
/// What it is compiled for, whatever the host and the Target: so the values are the same
/// everywhere.
inline constexpr char kEvaluatorTarget[] = "cpu:avx2,threads=1";

/// Points of all Stages, reduce axes included; saturates.
int64_t CountOperations(const ir::Workload& workload);

/// Runs small Workloads on the interpreter and others as code of the default schedule, in process.
/// Compiled Workloads are kept. Not thread-safe.
class KernelEvaluator final : public graph::Evaluator {
 public:
  /// `builder` must outlive the evaluator.
  explicit KernelEvaluator(measure::BuilderClient& builder);
  ~KernelEvaluator() override;

  absl::StatusOr<std::vector<graph::ConstantPtr>> Evaluate(
      const ir::Workload& workload, const std::vector<graph::ConstantPtr>& tensors) override;

  /// Compiles whatever the size.
  absl::StatusOr<std::vector<graph::ConstantPtr>> RunCompiled(
      const ir::Workload& workload, const std::vector<graph::ConstantPtr>& tensors);

 private:
  struct Compiled;

  absl::StatusOr<const Compiled*> Compile(const ir::Workload& workload);

  measure::BuilderClient& builder_;
  graph::InterpreterEvaluator interpreter_;
  std::unique_ptr<runtime::Crew> crew_;
  std::map<std::string, std::unique_ptr<Compiled>> compiled_;  // by text
};

}  // namespace hone::compiler
