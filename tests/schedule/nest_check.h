#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "ir/interpreter.h"
#include "ir/target.h"
#include "ir/workload.h"
#include "schedule/lower.h"
#include "schedule/trace.h"

// Compares a Workload run by the interpreter with the loop nest its Trace lowers to, on seeded
// inputs.
namespace hone::schedule {

enum class Agreement : uint8_t {
  kEqual,
  kIllegal,    ///< the Trace was refused; `why` is the reason
  kRefused,    ///< the code generator refused the nest (kInvalidArgument)
  kDifferent,  ///< a bug: outputs differ, or the nest does something forbidden
};

struct CheckResult {
  Agreement agreement = Agreement::kEqual;
  std::string why;
  Lowered lowered;
};

/// What to run besides the interpreted loop nest.
struct CheckOptions {
  std::string target = "cpu:avx2,threads=1";
  Binding binding;
  bool compile = false;  ///< also as machine code for `target`, where this host can run it
  /// Also by this, on the bytes of HoneCall.buffers; kInvalidArgument: it refuses the nest.
  std::function<absl::Status(const ir::LoopNest&, std::vector<std::vector<uint8_t>>*)> also_run;
  /// Added to the interpreter's error bound, in units of the largest |value| of the output: for
  /// algorithms with another error.
  double slack = 0;
  uint64_t seed = 1;
  /// Where many Traces of one Workload are checked with one seed: what the interpreter gives, made
  /// by the first check.
  std::vector<ir::InterpretedTensor>* expected = nullptr;
};

/// Both texts must parse and the Workload verify (else the test fails).
CheckResult CheckTexts(const std::string& workload, const std::string& trace,
                       const CheckOptions& options = {});
CheckResult CheckTrace(const ir::Workload& workload, const Trace& trace,
                       const CheckOptions& options = {});

/// The loops of all phases, without buffers and steps; "illegal: reason" when the Trace is refused.
/// A nest that does not equal the interpreter fails the test.
std::string Loops(const std::string& workload, const std::string& trace);

/// The default's Trace, and its text; code and loop nest must equal the interpreter.
Trace CheckedDefault(const std::string& workload, const std::string& target);
std::string CheckedDefaultText(const std::string& workload, const std::string& target);

/// The Workload of a text; a failure of the test when it does not parse or verify.
ir::Workload WorkloadOf(const std::string& text);
Trace TraceOf(const std::string& text);
ir::Target TargetOf(const std::string& text);

}  // namespace hone::schedule
