#include "ir/loop_memory.h"

#include <algorithm>

namespace hone::ir {

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

Element LoopMemory::Read(DType dtype, int64_t start, int64_t index, int agent, std::string* why) {
  const int64_t byte = start + index * SizeOf(dtype);
  for (int64_t b = byte; b < byte + SizeOf(dtype); ++b) {
    if (!set_[static_cast<size_t>(b)]) *why = "reads an element that nobody wrote";
  }
  if (Touch* touch = TouchAt(byte)) {
    if (touch->writer != kNobody && touch->writer != agent) {
      *why = "races: " + std::to_string(agent) + " reads what " + std::to_string(touch->writer) +
             " writes without a barrier between";
    }
    touch->reader = touch->reader == kNobody || touch->reader == agent ? agent : kMany;
  }
  return ReadElement(dtype, bytes_.data() + start, index);
}

void LoopMemory::Write(DType dtype, int64_t start, int64_t index, Element element, int agent,
                       std::string* why) {
  const int64_t byte = start + index * SizeOf(dtype);
  if (Touch* touch = TouchAt(byte)) {
    const int other =
        touch->writer != kNobody && touch->writer != agent ? touch->writer : touch->reader;
    if (other != kNobody && other != agent) {
      *why = "races: " + std::to_string(agent) + " writes what " +
             (other == kMany ? "others touch" : std::to_string(other) + " touches") +
             " without a barrier between";
    }
    touch->writer = agent;
  }
  const auto first = set_.begin() + static_cast<ptrdiff_t>(byte);
  std::fill(first, first + static_cast<ptrdiff_t>(SizeOf(dtype)), true);
  WriteElement(dtype, bytes_.data() + start, index, element);
}

}  // namespace hone::ir
