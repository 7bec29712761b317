#include "measure/guarded_buffer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

#include "gtest/gtest.h"

#include "base/core/unique_fd.h"
#include "runtime/kernel.h"

namespace hone::measure {
namespace {

void Touch(std::byte* address) { *const_cast<volatile std::byte*>(address) = std::byte{1}; }

TEST(GuardedBufferTest, AGuardFollowsTheLastAlignedByte) {
  for (const int64_t bytes : {int64_t{1}, int64_t{64}, int64_t{4096}, int64_t{5000},
                              int64_t{(2 << 20) - 64}, int64_t{(2 << 20) + 4}}) {
    SCOPED_TRACE(bytes);
    Result<GuardedBuffer> buffer = GuardedBuffer::Allocate(bytes);
    ASSERT_TRUE(buffer.ok()) << buffer.status().message();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 64, 0u);
    EXPECT_EQ(buffer->span().size(), static_cast<size_t>(bytes));
    std::memset(buffer->data(), 1, static_cast<size_t>(bytes));
    const int64_t aligned = (bytes + 63) / 64 * 64;
    Touch(buffer->data() + aligned - 1);
    EXPECT_DEATH(Touch(buffer->data() + aligned), "");
    ASSERT_TRUE(buffer->Protect().ok());
    EXPECT_DEATH(Touch(buffer->data()), "");
    EXPECT_DEATH(Touch(buffer->data() + aligned), "");
  }
}

// A candidate is blamed for using memory up, not for a file that somebody closed to it.
TEST(GuardedBufferTest, OnlyWantOfMemoryIsSaidToBeThat) {
  EXPECT_EQ(GuardedBuffer::Allocate(int64_t{1} << 50).status().code(),
            StatusCode::kResourceExhausted);
  const UniqueFd file(::memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(file.get(), 4096), 0);
  ASSERT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  const Result<GuardedBuffer> mapped =
      GuardedBuffer::MapShared(file.get(), {.region_bytes = 4096, .data_bytes = 4});
  EXPECT_EQ(mapped.status().code(), StatusCode::kFailedPrecondition) << mapped.status().message();
}

TEST(GuardedBufferTest, NoBytesAreGuardedToo) {
  Result<GuardedBuffer> buffer = GuardedBuffer::Allocate(0);
  ASSERT_TRUE(buffer.ok());
  EXPECT_NE(buffer->data(), nullptr);
  EXPECT_DEATH(Touch(buffer->data()), "");
}

TEST(GuardedBufferTest, AGuardFollowsEachThreadsScratch) {
  for (const int64_t bytes : {int64_t{4}, int64_t{4096}, int64_t{5000}, int64_t{3} << 20}) {
    SCOPED_TRACE(bytes);
    Result<runtime::Scratch> scratch = runtime::Scratch::AllocateGuarded(2, bytes);
    ASSERT_TRUE(scratch.ok()) << scratch.status().message();
    for (const int thread : {0, 1}) {
      auto* const mine = static_cast<std::byte*>(scratch->Of(thread));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(mine) % 64, 0u);
      std::memset(mine, 1, static_cast<size_t>(bytes));
      EXPECT_DEATH(Touch(mine + (bytes + 63) / 64 * 64), "");
    }
  }
}

TEST(GuardedBufferTest, PoisonIsNoValueOfAKernel) {
  float value = 0;
  Poison(ir::DType::kF32, std::as_writable_bytes(std::span(&value, 1)));
  EXPECT_TRUE(std::isnan(value));
  uint8_t flag = 0;
  Poison(ir::DType::kBool, std::as_writable_bytes(std::span(&flag, 1)));
  EXPECT_GT(flag, 1);
}

}  // namespace
}  // namespace hone::measure
