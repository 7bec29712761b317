#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/core/hash128.h"
#include "compiler/batch_run.h"
#include "compiler/cascades.h"
#include "compiler/model_steps.h"

namespace hone::client {

/// How the images of a batch and chains of layers run while a model is tuned, and the tasks of the
/// model the other way where that is still to be decided.
struct TunedWay {
  using Tasks = std::vector<std::pair<Hash128, int64_t>>;  ///< hash and count

  compiler::BatchRun batch = compiler::BatchRun::kAuto;  ///< kAuto: there is no batch to decide on
  Tasks together;                                        ///< all images at once; may be empty
  compiler::CascadeRun cascades = compiler::CascadeRun::kAuto;
  Tasks apart;  ///< every layer a kernel; may be empty

  /// What was asked for, and where that is kAuto, what the steps of the model have.
  static TunedWay Of(const compiler::ModelSteps& steps, compiler::BatchRun batch,
                     compiler::CascadeRun cascades);
};

}  // namespace hone::client
