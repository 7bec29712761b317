#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/workload.h"
#include "measure/candidate_builder.h"
#include "measure/run_job.h"

// A candidate that one machine built and another runs: what travels between them.
namespace hone::measure {

/// Everything that a builder made of a Trace. What a runner makes up (inputs, constants, threads)
/// follows from the Workload and is not part of it.
struct BuiltArtifact {
  std::string trace;  ///< text that was built (the default's when none was asked for)
  RunKernel kernel;
  RunKernel prologue;                       ///< empty where the kernel has none
  std::vector<int32_t> prologue_arguments;  ///< PrepareJob's
};

BuiltArtifact ArtifactOf(const BuiltCandidate& built);

/// One byte form: the same artifact, the same bytes.
std::string EncodeBuiltArtifact(const BuiltArtifact& artifact);
/// Trusts nothing: kDataLoss for what the encoder did not write.
absl::StatusOr<BuiltArtifact> DecodeBuiltArtifact(std::string_view bytes);

/// The candidate that a runner prepares, from the bytes of an artifact made elsewhere. Those for
/// another workload, target, trace (`trace` empty: the default schedule) or builder version, and
/// such whose buffers are not the Workload's, are refused: outcome kWorkerLost, which says nothing
/// about the candidate.
BuiltCandidate CandidateFrom(const ir::Workload& workload, const std::string& target,
                             const std::string& trace, uint64_t seed, std::string_view bytes);

}  // namespace hone::measure
