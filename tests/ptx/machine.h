#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tests/ptx/program.h"

namespace hone::ptx {

/// One launch of a kernel.
struct Launch {
  int64_t grid[3] = {1, 1, 1};
  int64_t block[3] = {1, 1, 1};
  /// One a parameter: a number, or a buffer's address as Device::Add gave it.
  std::vector<uint64_t> parameters;
  std::vector<std::vector<uint8_t>> wide;  ///< the bytes of those after them, if larger
  int64_t shared_bytes = 0;                ///< that a block gets beside what it declares
  uint64_t seed = 1;                       ///< of the order in which threads and blocks run
};

/// A GPU's global memory and what it runs. Buffers are told apart: an address that strays from one
/// lands in none.
class Device {
 public:
  Device() = default;
  /// With one program, number 0.
  explicit Device(Program program) { Load(std::move(program)); }

  /// Its number, for Run.
  int Load(Program program);

  /// Copies bytes into global memory. `set`: they hold something; else reading them first is an
  /// error.
  uint64_t Add(std::span<const uint8_t> bytes, bool set);
  /// The bytes at an address from Add.
  std::span<const uint8_t> Bytes(uint64_t address) const;
  /// So many bytes at an address in a buffer; empty: they do not lie in one.
  std::span<const uint8_t> Read(uint64_t address, size_t bytes) const;
  /// As the host writes them. False: they do not lie in one buffer.
  bool Write(uint64_t address, std::span<const uint8_t> bytes);
  /// A kernel; null: there is none of this name.
  const Kernel* KernelOf(int program, std::string_view kernel) const;

  /// Runs one kernel. Threads take turns of random length. kInternal names instruction and thread:
  /// an access outside of memory or not aligned, a read of memory or a register that nothing was
  /// written to, two threads (of different blocks, or of one between two barriers) at one byte
  /// of global or shared memory, one of them writing, a barrier that not all threads reach, a touch
  /// of what an asynchronous copy writes before its thread has waited for it, a warp that does not
  /// come together to ldmatrix or mma, a warpgroup to wgmma, a touch of a wgmma's sums or a write
  /// to its factors before all have waited for it, factors that are not shown to it by
  /// fence.proxy.async, an unspecified result, more than 2^24 instructions.
  absl::Status Run(int program, std::string_view kernel, const Launch& launch);
  absl::Status Run(std::string_view kernel, const Launch& launch) { return Run(0, kernel, launch); }

  /// Memory with what is known of each byte.
  struct Shadow {
    /// Who touched it last, in this launch: block, thread, number of barriers before.
    struct Touch {
      int64_t block = -1;
      int32_t thread = 0;
      int32_t epoch = 0;
    };
    Touch write, read;
    bool set = false;
    bool many_threads = false;  ///< several of the block have read it since the last barrier
    bool many_blocks = false;   ///< several have read it
    bool pending = false;       ///< an asynchronous copy that nobody waited for may write it
    int32_t readers = 0;        ///< wgmmas that nobody waited for may read it
    /// Fences of the asynchronous proxy that the thread that wrote it had done by then; -1: it was
    /// not written by a thread.
    int32_t unshown = -1;
    /// Where a copy of a box has landed: its barrier and the number of its phase. 0: none has.
    uint64_t barrier = 0;
    int64_t phase = 0;
  };
  struct Memory {
    uint64_t address = 0;
    std::vector<uint8_t> bytes;
    std::vector<Shadow> shadow;
  };

 private:
  struct Loaded {
    Program program;
    std::vector<std::pair<std::string, uint64_t>> symbols;
  };
  /// The buffer that holds so many bytes at an address, or null.
  const Memory* Find(uint64_t address, size_t bytes) const;

  std::vector<Loaded> programs_;
  std::vector<Memory> global_;  // by address
};

}  // namespace hone::ptx
