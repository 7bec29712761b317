#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/random.h"
#include "tests/mock_cuda/mock_map.h"
#include "tests/ptx/groups.h"
#include "tests/ptx/machine.h"
#include "tests/ptx/program.h"

namespace hone::ptx {

using Memory = Device::Memory;
using Shadow = Device::Shadow;

// Where generic addresses see shared and local memory.
inline constexpr uint64_t kSharedWindow = uint64_t{1} << 45;
inline constexpr uint64_t kLocalWindow = uint64_t{1} << 46;
// No variable has the address 0 of its space.
inline constexpr uint64_t kFirstOffset = 256;
inline constexpr uint64_t kWarpSize = 32;

uint64_t RoundedUp(uint64_t value, uint64_t to);
Memory MakeMemory(uint64_t address, std::span<const uint8_t> bytes, bool set);

/// A wgmma.mma_async that a warpgroup has begun.
struct GroupProduct {
  GroupDescriptor a, b;
  bool a_across = false, b_across = false;
  int columns = 0;
  bool bf16 = false, adds = true;
  size_t first_thread = 0;
  std::vector<int> sums;  ///< registers, of every thread
  bool landed = false;
  size_t warps_done = 0;  ///< that have waited for it
};

struct Thread {
  enum class State : uint8_t { kReady, kAtBarrier, kAtShuffle, kAtMatrices, kAtPhase, kEnded };
  State state = State::kReady;
  int32_t number = 0;  ///< in its block
  std::array<int64_t, 3> index = {};
  size_t next = 0;  ///< instruction
  std::vector<uint64_t> registers;
  std::vector<uint8_t> set;
  Memory local;
  /// cp.async that this thread has not waited for.
  struct Copy {
    uint64_t to = 0, from = 0;
    int bytes = 0, read = 0;  ///< beyond `read` it writes zeros
    int64_t group = -1;       ///< -1: not committed
    bool landed = false;
  };
  std::vector<Copy> copies;
  int64_t groups = 0;  ///< committed
  /// wgmma that this thread has not waited for.
  struct Product {
    std::shared_ptr<GroupProduct> product;
    int64_t group = -1;  ///< -1: not committed
  };
  std::vector<Product> products;
  int64_t product_groups = 0;  ///< committed
  std::vector<int> awaited;    ///< by register: products that may still change it
  /// By register: whether it was touched since the last wgmma.fence.
  mutable std::vector<uint8_t> unfenced;
  bool group_fenced = false;          ///< a wgmma.fence came
  std::vector<int32_t> proxy_fences;  ///< epochs of its fences of the asynchronous proxy
  std::map<uint64_t, int64_t> seen;   ///< by barrier: phases that it knows to have ended
};

/// One block of a launch: its threads, and what they do to memory.
class Block {
 public:
  /// `given`: names of the shared memory that the launch gives.
  Block(const Kernel& kernel, const std::vector<Variable>& given, const Launch& launch,
        const std::map<std::string, uint64_t>& symbols, std::vector<Memory>* global,
        const Memory* parameters, std::array<int64_t, 3> index, int64_t number, Random* random,
        int64_t* budget);
  std::string Run();

 private:
  std::vector<uint8_t> Garbage(uint64_t bytes);
  void Fail(const Thread& t, std::string_view what);

  // ---- threads that wait ----
  /// False: all have ended, or something is wrong.
  bool Release();
  bool ReleaseShuffles();
  void Shuffle(size_t begin, const Thread& first);
  bool ReleaseMatrices();
  std::span<Thread> Together(const Thread& t, const Instruction& in);
  void FetchMatrices(const Instruction& in, std::span<Thread> warp);
  void Multiply(const Instruction& in, std::span<Thread> warp);

  // ---- warpgroups ----
  void RunGroups(const Instruction& in, std::span<Thread> threads);
  void BeginProduct(const Instruction& in, std::span<Thread> group);
  void ForBytesOf(const GroupProduct& product, size_t warp,
                  const std::function<void(uint64_t)>& visit) const;
  void TakeSums(Thread& t, const GroupProduct& product);
  void BeginRead(Thread& reader, uint64_t at);
  void LandProducts(const GroupProduct& last);
  void Multiply(GroupProduct* product);
  /// Waits for groups below this number.
  void AwaitProducts(Thread& t, int64_t groups);

  // ---- operands ----
  uint64_t Special(const Thread& t, std::string_view name);
  uint64_t AddressOf(const Thread& t, const std::string& name);
  uint64_t RegisterValue(const Thread& t, int reg);
  /// The bits of an operand, of this width.
  uint64_t Source(const Thread& t, const Operand& o, Type type);
  void SetRegister(Thread& t, const Operand& o, uint64_t value, Type type);

  // ---- memory ----
  struct Place {
    Memory* memory = nullptr;
    uint64_t offset = 0;
    bool shared_by_threads = false;
  };

  std::optional<Place> Find(Thread& t, Space space, uint64_t address);
  /// Whether what thread `by` did may come at the same time as what `t` does now.
  bool Unordered(const Shadow::Touch& by, const Thread& t) const;
  void TouchByte(Thread& t, Shadow* byte, bool write);
  /// `bytes` at an address: read into `value`, or written from it.
  void Access(Thread& t, Space space, uint64_t address, int bytes, bool write, uint64_t* value);
  void LoadOrStore(Thread& t, const Instruction& in);
  void ConvertAddress(Thread& t, const Instruction& in);
  uint64_t AddressAt(Thread& t, const Operand& at);

  // ---- asynchronous copies ----
  void CopyAsync(Thread& t, const Instruction& in);
  void StartCopy(Thread& t, const Instruction& in);
  void Land(Thread& t, Thread::Copy* copy);
  /// Waits for groups below this number.
  void AwaitCopies(Thread& t, int64_t groups);

  // ---- barriers in memory, and copies that arrive at them ----
  struct Barrier {
    int64_t count = 1, left = 1;  ///< arrivals of a phase
    int64_t bytes = 0;            ///< expected, less those that have landed
    int64_t phase = 0;            ///< phases that have ended
    int32_t thread = 0;           ///< that began it
    bool shown = false;           ///< to the asynchronous proxy
  };
  struct Bulk {
    size_t thread = 0;
    mock_cuda::TensorMap map;
    uint64_t to = 0, barrier = 0;
    std::vector<int64_t> from;  ///< innermost first
    uint64_t element() const { return map.type == 6 || map.type == 9 ? 2 : 0; }
    uint64_t bytes() const { return map.box[0] * uint64_t{map.box[1]} * element(); }
  };
  Barrier* BarrierAt(Thread& t, uint64_t address);
  void UseBarrier(Thread& t, const Instruction& in);
  void Fence(Thread& t, const Instruction& in);
  static void EndPhase(Barrier* barrier);
  bool TryWait(Thread& t, const Instruction& in);
  bool WakeThreads();
  void ShareWhatIsSeen();
  static bool HasSeen(const Thread& t, const Shadow& shadow);
  void BeginBulk(Thread& t, const Instruction& in);
  bool LandBulk();
  /// Whether what its writer wrote is there for the asynchronous proxy, as `t` uses that.
  bool IsShown(const Shadow& shadow, const Thread& t) const;

  // ---- instructions ----
  void Step(Thread& t);
  /// The type of source k.
  static Type SourceType(const Instruction& in, size_t k);
  static Type ResultType(const Instruction& in);
  void Calculate(Thread& t, const Instruction& in);
  const Kernel& kernel_;
  const Launch& launch_;
  const std::map<std::string, uint64_t>& symbols_;
  std::vector<Memory>& global_;
  const Memory& parameters_;
  const std::array<int64_t, 3> index_;
  const int64_t number_;
  Random& random_;
  int64_t& budget_;
  std::map<std::string, uint64_t> own_symbols_;
  Memory shared_;
  std::vector<Thread> threads_;
  std::map<uint64_t, Barrier> barriers_;
  std::vector<Bulk> bulks_;                              ///< on their way
  std::vector<std::shared_ptr<GroupProduct>> products_;  ///< in the order of their beginning
  int32_t epoch_ = 0;
  std::string error_;
};

}  // namespace hone::ptx
