#include "ir/loop_memory.h"

#include <algorithm>

namespace hone::ir {
namespace {

/// The number by which it differs from the other one.
std::string NameOf(const LoopAgent& agent, const LoopAgent& other) {
  return std::to_string(agent.block != other.block ? agent.block : agent.thread);
}

}  // namespace

LoopMemory::LoopMemory(int64_t bytes)
    : own_(static_cast<size_t>(bytes)), bytes_(own_), set_(static_cast<size_t>(bytes)) {}

LoopMemory::LoopMemory(std::span<uint8_t> bytes, bool is_set)
    : bytes_(bytes), set_(bytes.size(), is_set) {}

void LoopMemory::Unset() { set_.assign(set_.size(), false); }

LoopMemory::Touch* LoopMemory::TouchAt(int64_t byte) {
  if (touched_.empty()) return nullptr;
  Touch& touch = touched_[static_cast<size_t>(byte)];
  if (touch.epoch != epoch_) touch = {.epoch = epoch_};
  return &touch;
}

Element LoopMemory::Read(DType dtype, int64_t start, int64_t index, const LoopAgent& agent,
                         std::string* why) {
  const int64_t byte = start + index * SizeOf(dtype);
  for (int64_t b = byte; b < byte + SizeOf(dtype); ++b) {
    if (!set_[static_cast<size_t>(b)]) *why = "reads an element that nobody wrote";
  }
  if (Touch* touch = TouchAt(byte)) {
    if (touch->written && touch->writer.Races(agent)) {
      *why = "races: " + NameOf(agent, touch->writer) + " reads what " +
             NameOf(touch->writer, agent) + " writes without a barrier between";
    }
    const bool same_block = touch->read && touch->reader.block == agent.block;
    touch->many_blocks |= touch->read && !same_block;
    touch->many_threads = same_block && touch->reader.interval == agent.interval &&
                          (touch->many_threads || touch->reader.thread != agent.thread);
    touch->reader = agent;
    touch->read = true;
  }
  return ReadElement(dtype, bytes_.data() + start, index);
}

void LoopMemory::Write(DType dtype, int64_t start, int64_t index, Element element,
                       const LoopAgent& agent, std::string* why) {
  const int64_t byte = start + index * SizeOf(dtype);
  if (Touch* touch = TouchAt(byte)) {
    const bool many =
        touch->many_blocks || (touch->many_threads && touch->reader.interval == agent.interval);
    if (touch->written && touch->writer.Races(agent)) {
      *why = "races: " + NameOf(agent, touch->writer) + " writes what " +
             NameOf(touch->writer, agent) + " touches without a barrier between";
    } else if (touch->read && (many || touch->reader.Races(agent))) {
      *why = "races: " + NameOf(agent, touch->reader) + " writes what " +
             (many ? "others touch" : NameOf(touch->reader, agent) + " touches") +
             " without a barrier between";
    }
    touch->writer = agent;
    touch->written = true;
  }
  const auto first = set_.begin() + static_cast<ptrdiff_t>(byte);
  std::fill(first, first + static_cast<ptrdiff_t>(SizeOf(dtype)), true);
  WriteElement(dtype, bytes_.data() + start, index, element);
}

}  // namespace hone::ir
