#include <algorithm>

#include "fmt/core.h"

#include "tests/ptx/arith.h"
#include "tests/ptx/block.h"

// Operands and memory.
namespace hone::ptx {

uint64_t RoundedUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

Memory MakeMemory(uint64_t address, std::span<const uint8_t> bytes, bool set) {
  Memory memory{address, {bytes.begin(), bytes.end()}, {}};
  memory.shadow.resize(bytes.size());
  for (Shadow& shadow : memory.shadow) shadow.set = set;
  return memory;
}

uint64_t Block::Special(const Thread& t, std::string_view name) {
  const auto axis = static_cast<size_t>(name.back() - 'x');
  if (name == "%laneid") return static_cast<uint64_t>(t.number) % kWarpSize;
  if (name.starts_with("%tid")) return static_cast<uint64_t>(t.index[axis]);
  if (name.starts_with("%ctaid")) return static_cast<uint64_t>(index_[axis]);
  if (name.starts_with("%ntid")) return static_cast<uint64_t>(launch_.block[axis]);
  return static_cast<uint64_t>(launch_.grid[axis]);
}

uint64_t Block::AddressOf(const Thread& t, const std::string& name) {
  const auto own = own_symbols_.find(name);
  if (own != own_symbols_.end()) return own->second;
  const auto found = symbols_.find(name);
  if (found != symbols_.end()) return found->second;
  Fail(t, "no variable " + name);
  return 0;
}

uint64_t Block::RegisterValue(const Thread& t, int reg) {
  if (t.set[static_cast<size_t>(reg)] == 0) Fail(t, "it reads a register that holds nothing");
  if (t.awaited[static_cast<size_t>(reg)] > 0)
    Fail(t, "a wgmma that nobody waited for may change its register");
  t.unfenced[static_cast<size_t>(reg)] = 1;
  return t.registers[static_cast<size_t>(reg)];
}

uint64_t Block::Source(const Thread& t, const Operand& o, Type type) {
  uint64_t value = 0;
  switch (o.kind) {
    case Operand::Kind::kRegister: value = RegisterValue(t, o.reg); break;
    case Operand::Kind::kImmediate: value = o.bits; break;
    case Operand::Kind::kSpecial: value = Special(t, o.name); break;
    case Operand::Kind::kSymbol:
      value = AddressOf(t, o.name) + static_cast<uint64_t>(o.offset);
      break;
    case Operand::Kind::kVector: {
      const int width = type.bits / static_cast<int>(o.parts.size());
      for (size_t k = o.parts.size(); k-- > 0;) {
        const uint64_t part = Source(t, o.parts[k], {'b', width});
        value = (width < 64 ? value << width : 0) | part;
      }
      break;
    }
    default: Fail(t, "an operand that gives no value");
  }
  if (o.negated) value ^= 1;
  return Truncated(value, type.bits);
}

void Block::SetRegister(Thread& t, const Operand& o, uint64_t value, Type type) {
  if (o.kind == Operand::Kind::kSink) return;
  if (o.kind == Operand::Kind::kVector) {
    const int width = type.bits / static_cast<int>(o.parts.size());
    for (size_t k = 0; k < o.parts.size(); ++k)
      SetRegister(t, o.parts[k], value >> (static_cast<size_t>(width) * k), {'b', width});
    return;
  }
  if (o.kind != Operand::Kind::kRegister) return Fail(t, "it writes to no register");
  const int width = kernel_.registers[static_cast<size_t>(o.reg)].bits;
  if (type.bits > width) return Fail(t, "its register is too narrow");
  // Wider registers are filled up by the type's sign.
  const bool is_signed = type.kind == 's';
  value =
      is_signed ? static_cast<uint64_t>(Extended(value, type.bits)) : Truncated(value, type.bits);
  if (t.awaited[static_cast<size_t>(o.reg)] > 0)
    return Fail(t, "a wgmma that nobody waited for may change its register");
  t.unfenced[static_cast<size_t>(o.reg)] = 1;
  t.registers[static_cast<size_t>(o.reg)] = Truncated(value, width);
  t.set[static_cast<size_t>(o.reg)] = 1;
}

std::optional<Block::Place> Block::Find(Thread& t, Space space, uint64_t address) {
  if (space == Space::kGeneric) {
    space = address >= kLocalWindow    ? Space::kLocal
            : address >= kSharedWindow ? Space::kShared
                                       : Space::kGlobal;
    if (space != Space::kGlobal) address -= space == Space::kLocal ? kLocalWindow : kSharedWindow;
  }
  const auto in = [&](Memory* memory, bool threads) -> std::optional<Place> {
    if (address < memory->address || address - memory->address >= memory->bytes.size())
      return std::nullopt;
    return Place{memory, address - memory->address, threads};
  };
  if (space == Space::kShared) return in(&shared_, true);
  if (space == Space::kLocal) return in(&t.local, false);
  if (space == Space::kParam) return in(const_cast<Memory*>(&parameters_), false);
  const auto after =
      std::upper_bound(global_.begin(), global_.end(), address,
                       [](uint64_t at, const Memory& memory) { return at < memory.address; });
  return after == global_.begin() ? std::nullopt : in(&*std::prev(after), true);
}

bool Block::Unordered(const Shadow::Touch& by, const Thread& t) const {
  if (by.block < 0) return false;
  return by.block != number_ || (by.epoch == epoch_ && by.thread != t.number);
}

void Block::TouchByte(Thread& t, Shadow* byte, bool write) {
  if (Unordered(byte->write, t)) Fail(t, "a race with a write of another thread");
  const Shadow::Touch now{number_, t.number, epoch_};
  if (write) {
    const bool others = byte->many_threads && byte->read.epoch == epoch_;
    if (byte->many_blocks || Unordered(byte->read, t) || others)
      Fail(t, "a race with a read of another thread");
    byte->write = now;
    return;
  }
  if (byte->read.block >= 0 && byte->read.block != number_) byte->many_blocks = true;
  const bool same = byte->read.block == number_ && byte->read.epoch == epoch_;
  byte->many_threads = same && (byte->many_threads || byte->read.thread != t.number);
  byte->read = now;
}

void Block::Access(Thread& t, Space space, uint64_t address, int bytes, bool write,
                   uint64_t* value) {
  const std::optional<Place> place = Find(t, space, address);
  if (!place || place->offset + static_cast<uint64_t>(bytes) > place->memory->bytes.size())
    return Fail(t, fmt::format("address {:#x} is outside of all memory", address));
  if (!write) *value = 0;
  for (int k = 0; k < bytes; ++k) {
    const size_t at = place->offset + static_cast<size_t>(k);
    Shadow& shadow = place->memory->shadow[at];
    if (shadow.pending) return Fail(t, "a copy that nobody waited for may write there");
    if (!write && !HasSeen(t, shadow)) return Fail(t, "it has not waited for the copy to there");
    if (place->shared_by_threads) TouchByte(t, &shadow, write);
    if (write) {
      if (shadow.readers > 0) return Fail(t, "a wgmma that nobody waited for may read it");
      shadow.unshown = static_cast<int32_t>(t.proxy_fences.size());
      shadow.barrier = 0;
      place->memory->bytes[at] = static_cast<uint8_t>(*value >> (8 * k));
      shadow.set = true;
    } else if (!shadow.set) {
      return Fail(t, "it reads memory that nothing was written to");
    } else {
      *value |= static_cast<uint64_t>(place->memory->bytes[at]) << (8 * k);
    }
  }
}

uint64_t Block::AddressAt(Thread& t, const Operand& at) {
  const uint64_t address = at.reg >= 0 ? RegisterValue(t, at.reg) : AddressOf(t, at.name);
  return address + static_cast<uint64_t>(at.offset);
}

void Block::LoadOrStore(Thread& t, const Instruction& in) {
  const bool write = in.opcode == "st";
  const Operand& at = in.operands[write ? 0 : 1];
  const Operand& data = in.operands[write ? 1 : 0];
  if (at.kind != Operand::Kind::kAddress) return Fail(t, "no address");
  const uint64_t address = AddressAt(t, at);
  const auto parts = static_cast<uint64_t>(in.vector);
  const auto bytes = static_cast<uint64_t>(in.type.bytes());
  if (address % (parts * bytes) != 0)
    return Fail(t, fmt::format("address {:#x} is not aligned to {}", address, parts * bytes));
  if (parts > 1 && (data.kind != Operand::Kind::kVector || data.parts.size() != parts))
    return Fail(t, "another number of registers");
  for (size_t k = 0; k < parts && error_.empty(); ++k) {
    const Operand& part = parts > 1 ? data.parts[k] : data;
    uint64_t value = write ? Source(t, part, in.type) : 0;
    Access(t, in.space, address + k * bytes, in.type.bytes(), write, &value);
    if (!write && error_.empty()) SetRegister(t, part, value, in.type);
  }
}

void Block::ConvertAddress(Thread& t, const Instruction& in) {
  const uint64_t window = in.space == Space::kShared  ? kSharedWindow
                          : in.space == Space::kLocal ? kLocalWindow
                                                      : 0;
  const uint64_t address = Source(t, in.operands[1], in.type);
  SetRegister(t, in.operands[0], in.Has(kToSpace) ? address - window : address + window, in.type);
}

}  // namespace hone::ptx
