#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "ir/artifact.h"
#include "runtime/crew.h"
#include "runtime/node_copies.h"
#include "runtime/scratch.h"

namespace hone::runtime {

/// Runs of one parallel loop, or of several whose iterations belong together: what lies between two
/// barriers. Knows what the last ones took, nothing else.
class Sweep {
 public:
  /// A phase and what it works on.
  struct Link {
    ir::PhaseFunction function = nullptr;
    void* const* buffers = nullptr;
  };
  struct Arguments {
    std::span<const Link> links;       ///< of each part one after the other, by one thread
    int64_t extent = 1;                ///< of the loops
    int threads = 1;                   ///< at most, beside the crew's
    const Scratch* scratch = nullptr;  ///< for all threads of the crew
    NodeStride nodes = {};             ///< of the links' buffers
    int64_t repeat = 0;                ///< HoneCall::step
    bool fixed = false;                ///< as Work says
  };
  struct Failure {
    int32_t result = 0;  ///< of the phase that stopped; 0: none did
    int32_t link = 0;

    bool ok() const { return result == 0; }
  };

  /// Returns when all iterations are done. In a part where a phase fails those after it do not run.
  /// Safe from many threads at once on different buffers, scratch and crews.
  Failure Run(const Arguments& arguments, Crew& crew);

 private:
  Work Cut(const Arguments& arguments, const Crew& crew) const;

  std::atomic<float> iteration_ns_{0};  // what an iteration of all links takes; 0: not known
};

}  // namespace hone::runtime
