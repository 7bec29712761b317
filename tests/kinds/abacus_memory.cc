#include "tests/kinds/abacus_memory.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

namespace hone::abacus {
namespace {

std::atomic<bool> g_lost = false;
constexpr int kOffsetBits = 48;

}  // namespace

Memory::Handle Memory::Allocate(size_t bytes) {
  buffers_.emplace_back(bytes + 64);
  return uint64_t{buffers_.size()} << kOffsetBits;
}

std::byte* Memory::At(Handle handle) {
  if (handle == 0) return nullptr;
  std::vector<std::byte>& buffer = buffers_[(handle >> kOffsetBits) - 1];
  const auto address = reinterpret_cast<uintptr_t>(buffer.data());
  return buffer.data() + (64 - address % 64) + (handle & ((uint64_t{1} << kOffsetBits) - 1));
}

bool Memory::Holds(Handle handle, int64_t bytes) const {
  const uint64_t number = handle >> kOffsetBits;
  if (number == 0) return bytes == 0;
  const uint64_t offset = handle & ((uint64_t{1} << kOffsetBits) - 1);
  return number <= buffers_.size() && bytes >= 0 &&
         offset + static_cast<uint64_t>(bytes) + 64 <= buffers_[number - 1].size();
}

Memory::Handle Memory::Copy(std::span<const std::byte> data) {
  const Handle handle = Allocate(data.size());
  std::ranges::copy(data, At(handle));
  return handle;
}

Queue::Queue(bool broken) : broken_(broken), thread_([this] { Work(); }) {
  // A thread's start makes system calls of its own, which a closed sandbox would end.
  Submit([] { return Status(); });
  static_cast<void>(Wait());
}

Queue::~Queue() {
  Submit(nullptr);
  thread_.join();
}

void Queue::Submit(std::function<Status()> work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  waiting_.push_back(std::move(work));
  changed_.notify_all();
}

Status Queue::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty() && !busy_; });
  return std::exchange(failure_, Status());
}

void Queue::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !waiting_.empty(); });
    const std::function<Status()> work = std::move(waiting_.front());
    waiting_.pop_front();
    if (work == nullptr) return;
    busy_ = true;
    const bool lost = g_lost || (broken_ && done_ > 2);
    ++done_;
    lock.unlock();
    Status status = lost ? Status(StatusCode::kUnavailable, "the abacus is lost") : work();
    lock.lock();
    busy_ = false;
    if (failure_.ok()) failure_ = std::move(status);
    changed_.notify_all();
  }
}

int32_t LaunchGrid(ir::PhaseFunction function, const ir::ArtifactPhase& phase, Memory& memory,
                   std::span<const Memory::Handle> arguments, ir::HoneCall call) {
  const ir::Launch& launch = phase.launch;
  std::vector<void*> buffers(arguments.size());
  for (const ir::Descriptor& descriptor : launch.descriptors) {
    const auto number = static_cast<size_t>(descriptor.argument);
    const std::optional<int64_t> bytes = ir::BytesOf(descriptor);
    if (number >= arguments.size() || !bytes || !memory.Holds(arguments[number], *bytes))
      return kBadDescriptor;
    buffers[number] = memory.At(arguments[number]);
  }
  call.buffers = buffers.data();
  for (int64_t z = launch.grid_z - 1; z >= 0; --z) {
    for (int64_t y = launch.grid_y - 1; y >= 0; --y) {
      for (int64_t x = launch.grid_x - 1; x >= 0; --x) {
        call.begin = (z * launch.grid_y + y) * launch.grid_x + x;
        call.end = call.begin + 1;
        if (call.begin >= phase.parallel_extent) continue;
        const int32_t result = function(&call);
        if (result != 0) return result;
      }
    }
  }
  return 0;
}

void LoseDevice(bool lost) { g_lost = lost; }

std::string Disguised(std::string_view code) {
  std::string other(code);
  for (char& c : other) c = static_cast<char>(c ^ 0x5a);
  return other;
}

}  // namespace hone::abacus
