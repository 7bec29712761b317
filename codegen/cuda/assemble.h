#pragma once

#include <memory>
#include <string>

#include "base/core/clock.h"
#include "base/status.h"
#include "codegen/cuda/assembler_log.h"

// PTX text → machine code of one chip. Hone builds and runs without an assembler: then PTX is what
// travels, and the driver of the machine with the GPU assembles it.
namespace hone::codegen {

struct Assembled {
  std::string cubin;  ///< an ELF file for exactly the chip asked for
  AssemblerLog log;
};

/// Thread-safe.
class Assembler {
 public:
  virtual ~Assembler() = default;

  /// Name and version, as "nvptxcompiler 13.5": two assemblers make code of different speed, so
  /// this belongs to an artifact's identity.
  virtual std::string version() const = 0;

  /// `chip` as NVIDIA writes it: "sm_80", "sm_90a". kInvalidArgument: the assembler refuses the
  /// text, with its words. kDeadlineExceeded, kInternal: it did not come to an end of its own.
  virtual absl::StatusOr<Assembled> Assemble(const std::string& ptx,
                                             const std::string& chip) const = 0;
};

/// NVIDIA's library nvPTXCompiler: runs in this process, starts nothing and reads no file, so it
/// works in the builder's sandbox. Null when Hone was built without it (CONTRIBUTING.md).
std::unique_ptr<Assembler> BuiltInAssembler();

/// The program `ptxas` of a CUDA Toolkit, at this path, run as a child for each call. Errors: as of
/// starting it, or kInvalidArgument when it does not say its version. `clock` must live on.
absl::StatusOr<std::unique_ptr<Assembler>> PtxasAssembler(const std::string& path,
                                                          const MonotonicClock& clock);

}  // namespace hone::codegen
