#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/core/status.h"
#include "ir/artifact.h"

// What the abacus of a package and the abacus of a runner share.
namespace hone::abacus {

/// Memory of the device; the host has handles, which are no addresses.
class Memory {
 public:
  using Handle = uint64_t;

  Handle Allocate(size_t bytes);
  /// What the device sees at a handle, 64-aligned; null at handle 0.
  std::byte* At(Handle handle);
  /// Whether all of `bytes` from a handle on are one buffer's.
  bool Holds(Handle handle, int64_t bytes) const;
  /// A copy of what the host has.
  Handle Copy(std::span<const std::byte> data);

 private:
  std::vector<std::vector<std::byte>> buffers_;
};

/// Work in order on a thread of its own: who submits goes on at once. What fails is told by Wait,
/// and after a loss everything fails. `broken`: it is lost for good once it has
/// done two things.
class Queue {
 public:
  explicit Queue(bool broken = false);
  ~Queue();

  void Submit(std::function<Status()> work);
  Status Wait();

 private:
  void Work();

  const bool broken_;
  int done_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<Status()>> waiting_;
  Status failure_;
  bool busy_ = false;
  std::thread thread_;
};

/// What a launch with a bad descriptor returns.
inline constexpr int32_t kBadDescriptor = 77 << 16;

/// Runs a phase as its launch says, the last block first; `arguments` are those of HoneCall. The
/// device finds an argument by its descriptor alone, and runs nothing where it does not hold what
/// is said there. What the first block that fails returns, or 0.
int32_t LaunchGrid(ir::PhaseFunction function, const ir::ArtifactPhase& phase, Memory& memory,
                   std::span<const Memory::Handle> arguments, ir::HoneCall call);

/// From now on whatever is run in this process fails, until the device is found again.
void LoseDevice(bool lost);

/// Code of an abacus as the host's, and the other way round.
std::string Disguised(std::string_view code);

}  // namespace hone::abacus
