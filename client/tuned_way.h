#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/core/hash128.h"
#include "compiler/batch_run.h"
#include "compiler/cascades.h"
#include "compiler/extract_kernels.h"

namespace hone::client {

/// How the images of a batch and chains of layers run while a model is tuned, and the tasks of the
/// model the other way where that is still to be decided.
struct TunedWay {
  using Tasks = std::vector<std::pair<Hash128, int64_t>>;  ///< hash and count

  struct Chains {
    compiler::CascadeRun run = compiler::CascadeRun::kAuto;
    Tasks apart;  ///< every layer a kernel; may be empty
  };

  compiler::BatchRun batch = compiler::BatchRun::kAuto;  ///< kAuto: there is no batch to decide on
  Tasks together;                                        ///< all images at once; may be empty
  Chains chains;
  Chains other_chains;  ///< where the batch runs the other way

  /// What was asked for, and where that is kAuto, what the ways of the model have.
  static TunedWay Of(const compiler::ModelWays& ways, compiler::BatchRun batch,
                     compiler::CascadeRun cascades);
};

}  // namespace hone::client
