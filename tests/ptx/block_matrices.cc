#include <algorithm>
#include <bit>

#include "fmt/core.h"

#include "tests/ptx/arith.h"
#include "tests/ptx/block.h"
#include "tests/ptx/groups.h"
#include "tests/ptx/matrices.h"

// ldmatrix and mma: what a warp does when all of its threads have come there.
namespace hone::ptx {

/// The threads that execute an instruction together with this one: .aligned, those of its warp,
/// and of its warpgroup where a product is begun. Empty: there are not so many in the block.
std::span<Thread> Block::Together(const Thread& t, const Instruction& in) {
  const bool group = IsOfGroups(in) && in.parts[0] == "mma_async";
  const size_t count = group ? kGroupSize : kWarpSize;
  const size_t begin = static_cast<size_t>(t.number) / count * count;
  if (begin + count > threads_.size()) return {};
  return {threads_.data() + begin, count};
}

bool Block::ReleaseMatrices() {
  // One that waits for warps that are not there yet, which others may let go on.
  const Thread* alone = nullptr;
  const Thread* missing = nullptr;
  for (size_t k = 0; k < threads_.size(); ++k) {
    const Thread& first = threads_[k];
    if (first.state != Thread::State::kAtMatrices) continue;
    const Instruction& in = kernel_.body[first.next];
    const std::span<Thread> threads = Together(first, in);
    const auto other = std::ranges::find_if(threads, [&](const Thread& t) {
      return t.state != Thread::State::kAtMatrices || t.next != first.next;
    });
    if (threads.empty() || other != threads.end()) {
      if (alone == nullptr) missing = threads.empty() ? nullptr : &*other;
      if (alone == nullptr) alone = &first;
      continue;
    }
    if (IsOfGroups(in))
      RunGroups(in, threads);
    else
      in.opcode == "mma" ? Multiply(in, threads) : FetchMatrices(in, threads);
    if (!error_.empty()) return true;
    for (Thread& t : threads) {
      t.state = Thread::State::kReady;
      ++t.next;
    }
    return true;
  }
  if (alone == nullptr) return false;
  Fail(*alone,
       missing == nullptr
           ? "its warp has not 32 threads, or its warpgroup not 128"
           : fmt::format("thread {},{} of its warp{} does not come here", missing->index[0],
                         missing->index[1], IsOfGroups(kernel_.body[alone->next]) ? "group" : ""));
  return true;
}

// Threads 8j to 8j + 7 give the addresses of the rows of matrix j, each of 16 bytes. Thread t gets
// elements 2(t % 4) and the next one of row t / 4; with .trans those rows of column t / 4.
void Block::FetchMatrices(const Instruction& in, std::span<Thread> warp) {
  const MatrixForm form = FormOf(in);
  std::vector<uint64_t> rows;
  for (size_t k = 0; k < 8 * static_cast<size_t>(form.count); ++k) {
    const uint64_t row = AddressAt(warp[k], in.operands[1]);
    if (!error_.empty()) return;
    if (row % 16 != 0) return Fail(warp[k], fmt::format("row {:#x} is not aligned to 16", row));
    const std::optional<Place> place = Find(warp[k], Space::kShared, row);
    if (!place || place->offset + 16 > place->memory->bytes.size())
      return Fail(warp[k], fmt::format("row {:#x} is not in shared memory", row));
    rows.push_back(row);
  }
  for (int matrix = 0; matrix < form.count; ++matrix) {
    for (size_t t = 0; t < kWarpSize; ++t) {
      uint64_t word = 0;
      for (size_t half = 0; half < 2; ++half) {
        const size_t pair = 2 * (t % 4) + half;
        const size_t row = form.transposed ? pair : t / 4, column = form.transposed ? t / 4 : pair;
        uint64_t element = 0;
        Access(warp[t], Space::kShared, rows[8 * static_cast<size_t>(matrix) + row] + 2 * column, 2,
               false, &element);
        word |= element << (16 * half);
      }
      if (!error_.empty()) return;
      SetRegister(warp[t], in.operands[0].parts[static_cast<size_t>(matrix)], word, {'b', 32});
    }
  }
}

void Block::Multiply(const Instruction& in, std::span<Thread> warp) {
  WarpRegisters r;
  const auto read = [&](size_t t, size_t operand, size_t part) {
    return static_cast<uint32_t>(Source(warp[t], in.operands[operand].parts[part], {'b', 32}));
  };
  for (size_t t = 0; t < kWarpSize; ++t) {
    for (size_t k = 0; k < 4; ++k) r.a[t][k] = read(t, 1, k);
    for (size_t k = 0; k < 2; ++k) r.b[t][k] = read(t, 2, k);
    for (size_t k = 0; k < 4; ++k) {
      r.integer_c[t][k] = read(t, 3, k);
      r.c[t][k] = std::bit_cast<float>(r.integer_c[t][k]);
    }
  }
  if (!error_.empty()) return;
  const MatrixForm form = FormOf(in);
  if (form.bytes)
    MultiplyAccumulateBytes(form.a_signed, form.b_signed, &r);
  else
    MultiplyAccumulate(form.bf16, &r);
  for (size_t t = 0; t < kWarpSize; ++t) {
    for (size_t k = 0; k < 4; ++k) {
      const uint32_t made = form.bytes ? r.integer_d[t][k] : std::bit_cast<uint32_t>(r.d[t][k]);
      SetRegister(warp[t], in.operands[0].parts[k], made, {'b', 32});
    }
  }
}

}  // namespace hone::ptx
