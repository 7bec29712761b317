#include "tests/ptx/block.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"

#include "tests/ptx/arith.h"
#include "tests/ptx/groups.h"
#include "tests/ptx/matrices.h"

// Threads and their instructions.
namespace hone::ptx {

Block::Block(const Kernel& kernel, const std::vector<Variable>& given, const Launch& launch,
             const std::map<std::string, uint64_t>& symbols, std::vector<Memory>* global,
             const Memory* parameters, std::array<int64_t, 3> index, int64_t number, Random* random,
             int64_t* budget)
    : kernel_(kernel),
      launch_(launch),
      symbols_(symbols),
      global_(*global),
      parameters_(*parameters),
      index_(index),
      number_(number),
      random_(*random),
      budget_(*budget) {
  uint64_t shared = kFirstOffset;
  uint64_t local = kFirstOffset;
  for (const Variable& v : kernel.variables) {
    uint64_t& top = v.space == Space::kShared ? shared : local;
    top = RoundedUp(top, static_cast<uint64_t>(v.alignment));
    own_symbols_[v.name] = top;
    top += static_cast<uint64_t>(v.bytes);
  }
  // All of them begin where the declared memory ends.
  for (const Variable& v : given) shared = RoundedUp(shared, static_cast<uint64_t>(v.alignment));
  for (const Variable& v : given) own_symbols_[v.name] = shared;
  shared += static_cast<uint64_t>(launch.shared_bytes);
  shared_ = MakeMemory(kFirstOffset, Garbage(shared - kFirstOffset), false);
  int32_t n = 0;
  for (int64_t z = 0; z < launch.block[2]; ++z) {
    for (int64_t y = 0; y < launch.block[1]; ++y) {
      for (int64_t x = 0; x < launch.block[0]; ++x) {
        Thread t;
        t.number = n++;
        t.index = {x, y, z};
        t.registers.resize(kernel.registers.size());
        t.set.resize(kernel.registers.size());
        t.awaited.resize(kernel.registers.size());
        t.unfenced.resize(kernel.registers.size());
        t.local = MakeMemory(kFirstOffset, Garbage(local - kFirstOffset), false);
        threads_.push_back(std::move(t));
      }
    }
  }
}

std::string Block::Run() {
  while (error_.empty()) {
    // Copies of boxes land at any time.
    if (!bulks_.empty() && random_.Below(256) == 0) LandBulk();
    std::vector<size_t> ready;
    for (size_t k = 0; k < threads_.size(); ++k) {
      if (threads_[k].state == Thread::State::kReady) ready.push_back(k);
    }
    if (ready.empty()) {
      if (!Release()) break;
      continue;
    }
    Thread& thread = threads_[ready[random_.Below(ready.size())]];
    const uint64_t turn = 1 + random_.Below(60);
    for (uint64_t k = 0; k < turn && thread.state == Thread::State::kReady; ++k) {
      Step(thread);
      if (!error_.empty()) break;
    }
  }
  return error_;
}

std::vector<uint8_t> Block::Garbage(uint64_t bytes) {
  std::vector<uint8_t> out(bytes);
  for (uint8_t& byte : out) byte = static_cast<uint8_t>(random_.Below(256));
  return out;
}

void Block::Fail(const Thread& t, std::string_view what) {
  if (!error_.empty()) return;
  const Instruction* in = t.next < kernel_.body.size() ? &kernel_.body[t.next] : nullptr;
  error_ = fmt::format("{} line {}: '{}' of thread {},{} in block {},{}: {}", kernel_.name,
                       in == nullptr ? 0 : in->line, in == nullptr ? "" : in->text, t.index[0],
                       t.index[1], index_[0], index_[1], what);
}

bool Block::Release() {
  if (WakeThreads() || LandBulk()) return error_.empty();
  if (ReleaseShuffles() || ReleaseMatrices()) return error_.empty();
  const Thread* first = nullptr;
  for (const Thread& t : threads_) {
    if (t.state == Thread::State::kAtBarrier) first = &t;
  }
  for (const Thread& t : threads_) {
    if (t.state == Thread::State::kAtPhase) Fail(t, "nobody ends the phase that it waits for");
  }
  if (first == nullptr) return false;
  for (const Thread& t : threads_) {
    if (t.state == Thread::State::kEnded)
      Fail(*first, fmt::format("thread {},{} ended without this barrier", t.index[0], t.index[1]));
    else if (t.next != first->next)
      Fail(*first, fmt::format("thread {},{} waits at another barrier", t.index[0], t.index[1]));
  }
  ++epoch_;
  ShareWhatIsSeen();
  for (Thread& t : threads_) {
    t.state = Thread::State::kReady;
    ++t.next;
  }
  return error_.empty();
}

bool Block::ReleaseShuffles() {
  for (size_t begin = 0; begin < threads_.size(); begin += kWarpSize) {
    for (size_t k = begin; k < std::min(begin + kWarpSize, threads_.size()); ++k) {
      if (threads_[k].state != Thread::State::kAtShuffle) continue;
      Shuffle(begin, threads_[k]);
      return true;
    }
  }
  return false;
}

void Block::Shuffle(size_t begin, const Thread& first) {
  const Instruction& in = kernel_.body[first.next];
  const uint64_t members = Truncated(Source(first, in.operands[4], {'b', 32}), 32);
  std::vector<uint64_t> values(kWarpSize), results(kWarpSize);
  std::vector<bool> valid(kWarpSize);
  const auto lane_thread = [&](uint64_t lane) -> Thread* {
    return begin + lane < threads_.size() ? &threads_[begin + lane] : nullptr;
  };
  for (uint64_t lane = 0; lane < kWarpSize; ++lane) {
    if (((members >> lane) & 1) == 0) continue;
    const Thread* t = lane_thread(lane);
    // Members beyond the block do not exist and take no part.
    if (t == nullptr) continue;
    if (t->state != Thread::State::kAtShuffle || t->next != first.next)
      return Fail(first, fmt::format("lane {} of its mask does not come here", lane));
    values[lane] = Source(*t, in.operands[1], {'b', 32});
  }
  for (uint64_t lane = 0; lane < kWarpSize; ++lane) {
    const Thread* t = lane_thread(lane);
    if (t == nullptr || ((members >> lane) & 1) == 0) continue;
    const uint64_t b = Source(*t, in.operands[2], {'b', 32}) & 31;
    const uint64_t c = Source(*t, in.operands[3], {'b', 32});
    const uint64_t segment = (c >> 8) & 31;
    const uint64_t last = (lane & segment) | (c & 31 & ~segment);
    uint64_t from = 0;
    if (in.Has(kUp)) {
      from = lane - b;
      valid[lane] = static_cast<int64_t>(from) >= static_cast<int64_t>(last);
    } else {
      from = in.Has(kDown)   ? lane + b
             : in.Has(kBfly) ? lane ^ b
                             : (lane & segment) | (b & ~segment);
      valid[lane] = from <= last;
    }
    if (!valid[lane]) from = lane;
    if (((members >> from) & 1) == 0 || lane_thread(from) == nullptr)
      return Fail(*t, fmt::format("it takes the value of lane {}, which gives none", from));
    results[lane] = values[from];
  }
  for (uint64_t lane = 0; lane < kWarpSize; ++lane) {
    Thread* t = lane_thread(lane);
    if (t == nullptr || ((members >> lane) & 1) == 0) continue;
    const Operand& to = in.operands[0];
    const bool pair = to.kind == Operand::Kind::kPair;
    SetRegister(*t, pair ? to.parts[0] : to, results[lane], {'b', 32});
    if (pair) SetRegister(*t, to.parts[1], valid[lane] ? 1 : 0, {'p', 1});
    t->state = Thread::State::kReady;
    ++t->next;
  }
}

void Block::Step(Thread& t) {
  if (t.next >= kernel_.body.size()) return Fail(t, "the kernel ends without ret");
  if (--budget_ < 0) return Fail(t, "it runs for ever");
  const Instruction& in = kernel_.body[t.next];
  if (in.guard >= 0 && (RegisterValue(t, in.guard) != 0) == in.guard_negated) {
    ++t.next;
  } else if (in.opcode == "bra") {
    t.next = static_cast<size_t>(in.operands[0].target);
  } else if (in.opcode == "ret") {
    if (!t.products.empty()) Fail(t, "it ends before a wgmma that it has begun");
    t.state = Thread::State::kEnded;
  } else if (in.opcode == "bar" || in.opcode == "barrier") {
    const Operand& number = in.operands[0];
    if (in.operands.size() > 1 || number.kind != Operand::Kind::kImmediate || number.bits != 0)
      Fail(t, "only the barrier 0 of the whole block is known");
    t.state = Thread::State::kAtBarrier;
  } else if (in.opcode == "shfl") {
    t.state = Thread::State::kAtShuffle;
  } else if (in.opcode == "mbarrier" && in.parts[0] == "try_wait") {
    if (TryWait(t, in)) ++t.next;
  } else if (IsOfMatrices(in) || IsOfGroups(in)) {
    t.state = Thread::State::kAtMatrices;
  } else {
    if (in.opcode == "ld" || in.opcode == "st") {
      LoadOrStore(t, in);
    } else if (in.opcode == "cvta") {
      ConvertAddress(t, in);
    } else if (in.opcode == "cp") {
      in.parts.empty() ? CopyAsync(t, in) : BeginBulk(t, in);
    } else if (in.opcode == "mbarrier") {
      UseBarrier(t, in);
    } else if (in.opcode == "fence") {
      Fence(t, in);
    } else {
      Calculate(t, in);
    }
    if (error_.empty()) ++t.next;
  }
}

Type Block::SourceType(const Instruction& in, size_t k) {
  const std::string& op = in.opcode;
  const Type word{'u', 32};
  if (op == "cvt") return in.second;
  if ((op == "selp" && k == 2) || (op == "setp" && k == 2)) return {'p', 1};
  if ((op == "shl" || op == "shr") && k == 1) return word;
  if ((op == "bfe" && k >= 1) || (op == "bfi" && k >= 2)) return word;
  if (op == "mad" && k == 2 && in.Has(kWide)) return {in.type.kind, 2 * in.type.bits};
  return in.type;
}

Type Block::ResultType(const Instruction& in) {
  if (in.opcode == "setp") return {'p', 1};
  if (in.opcode == "clz" || in.opcode == "popc") return {'u', 32};
  if (in.Has(kWide)) return {in.type.kind, 2 * in.type.bits};
  return in.type;
}

void Block::Calculate(Thread& t, const Instruction& in) {
  std::array<uint64_t, 4> sources = {};
  const size_t count = in.operands.size() - 1;
  for (size_t k = 0; k < count; ++k) sources[k] = Source(t, in.operands[k + 1], SourceType(in, k));
  if (!error_.empty()) return;
  uint64_t result = 0;
  const std::string wrong = Compute(in, {sources.data(), count}, &result);
  if (!wrong.empty()) return Fail(t, wrong);
  const Operand& to = in.operands[0];
  if (in.opcode != "setp") return SetRegister(t, to, result, ResultType(in));
  uint64_t opposite = result ^ 1;
  if (count == 3) {
    const auto with = [&](uint64_t p) {
      return in.Has(kAnd) ? p & sources[2] : in.Has(kOr) ? p | sources[2] : p ^ sources[2];
    };
    result = with(result);
    opposite = with(opposite);
  }
  const bool pair = to.kind == Operand::Kind::kPair;
  SetRegister(t, pair ? to.parts[0] : to, result, {'p', 1});
  if (pair) SetRegister(t, to.parts[1], opposite, {'p', 1});
}

}  // namespace hone::ptx
