#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/model_steps.h"
#include "compiler/trace_source.h"
#include "search/tuning_session.h"

// What the comparison of whole models may say of a session's kernels. Kernels are named by workload
// hash.
namespace hone::client {

/// Schedules of another source, but of a session's winners these Traces: the log may know others
/// that rank before them, and a comparison says nothing of what was not in it.
class WithWinners final : public compiler::TraceSource {
 public:
  /// `source` must outlive it; `traces` by workload hash.
  WithWinners(compiler::TraceSource& source, std::map<std::string, std::string> traces)
      : source_(source), traces_(std::move(traces)) {}
  absl::StatusOr<compiler::FoundTrace> Find(const ir::Workload& workload, const std::string& hash,
                                            const ir::Target& target) override;
  void BeginModel(const std::vector<compiler::ModelKernel>& kernels) override {
    source_.BeginModel(kernels);
  }
  void EndLookUps() override { source_.EndLookUps(); }

 private:
  compiler::TraceSource& source_;
  const std::map<std::string, std::string> traces_;
};

/// What the comparisons of whole models found, step by step.
class JudgedKernels {
 public:
  /// The first comparison: `changed` are the Traces of the tuned model that are not the default's.
  /// Those of `losing` are suspects from then on.
  void Compared(std::map<std::string, std::string> changed, std::set<std::string> losing);
  /// The second comparison: a suspect that does not lose again lost by chance, and is cleared.
  void ComparedAgain(const std::set<std::string>& losing);
  /// The model was not slower without the suspects.
  void PutBackSuspects() { put_back_ = suspects_; }

  const std::set<std::string>& suspects() const { return suspects_; }
  const std::set<std::string>& put_back() const { return put_back_; }
  /// What ran with another Trace than by default, and still would.
  std::set<std::string> Tuned() const;
  /// The winners among a session's tasks (hashes and verdicts) whose very Trace was in the tuned
  /// model and that are suspected of nothing.
  std::vector<int> Confirmed(const std::vector<std::string>& hashes,
                             const std::vector<search::TaskVerdict>& verdicts) const;

 private:
  std::map<std::string, std::string> changed_;  ///< Traces
  std::set<std::string> suspects_, put_back_;
};

}  // namespace hone::client
