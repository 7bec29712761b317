#pragma once

#include <cstdint>
#include <span>
#include <string_view>
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
  uint64_t seed = 1;  ///< of the order in which threads and blocks run
};

/// A GPU's global memory and what it runs. Buffers are told apart: an address that strays from one
/// lands in none.
class Device {
 public:
  explicit Device(Program program);

  /// Copies bytes into global memory. `set`: they hold something; else reading them first is an
  /// error.
  uint64_t Add(std::span<const uint8_t> bytes, bool set);
  /// The bytes at an address from Add.
  std::span<const uint8_t> Bytes(uint64_t address) const;

  /// Runs one kernel. Threads take turns of random length. kInternal names instruction and thread:
  /// an access outside of memory or not aligned, a read of memory or a register that nothing was
  /// written to, two threads (of different blocks, or of one between two barriers) at one byte
  /// of global or shared memory, one of them writing, a barrier that not all threads reach, an
  /// unspecified result, more than 2^24 instructions.
  absl::Status Run(std::string_view kernel, const Launch& launch);

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
  };
  struct Memory {
    uint64_t address = 0;
    std::vector<uint8_t> bytes;
    std::vector<Shadow> shadow;
  };

 private:
  Program program_;
  std::vector<Memory> global_;  // by address
  std::vector<std::pair<std::string, uint64_t>> symbols_;
};

}  // namespace hone::ptx
