#include "compiler/constant_pool.h"

#include <cstring>

#include "gtest/gtest.h"

namespace hone::compiler {
namespace {

graph::ConstantPtr Floats(const std::vector<double>& values) {
  return graph::MakeConstant(ir::DType::kF32, {static_cast<int64_t>(values.size())}, values);
}

/// In memory, in a folder, and where no file can be made.
class ConstantPoolTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Places, ConstantPoolTest,
                         ::testing::Values("", ::testing::TempDir(), "/no/such/folder"));

TEST_P(ConstantPoolTest, ConstantsLieOneAfterTheOtherAligned) {
  ConstantPool pool = *ConstantPool::Create(GetParam());
  EXPECT_EQ(*pool.Add(Floats({1, 2, 3})), 0);
  EXPECT_EQ(*pool.Add(Floats(std::vector<double>(17, 4))), 64);
  EXPECT_EQ(*pool.Add(Floats({5})), 192);
  EXPECT_EQ(pool.bytes(), 256);
  const auto region = pool.Take();
  ASSERT_TRUE(region.ok()) << region.status();
  const std::span<const std::byte> packed = region->span();
  ASSERT_EQ(packed.size(), 256u);
  float value = 0;
  std::memcpy(&value, packed.data() + 8, 4);
  EXPECT_EQ(value, 3);
  std::memcpy(&value, packed.data() + 64 + 16 * 4, 4);
  EXPECT_EQ(value, 4);
  std::memcpy(&value, packed.data() + 12, 4);  // between two constants
  EXPECT_EQ(value, 0);
}

TEST_P(ConstantPoolTest, EqualBytesAreStoredOnce) {
  ConstantPool pool = *ConstantPool::Create(GetParam());
  const graph::ConstantPtr tied = Floats({1, 2});
  EXPECT_EQ(*pool.Add(tied), 0);
  EXPECT_EQ(*pool.Add(Floats({3})), 64);
  EXPECT_EQ(*pool.Add(tied), 0);
  EXPECT_EQ(*pool.Add(Floats({1, 2})), 0);
  EXPECT_EQ(*pool.Add(Floats({1, 2, 0})), 128);
  EXPECT_EQ(pool.bytes(), 192);
}

// Results of prologues go once they are packed; the next one may get the memory of one that went.
TEST_P(ConstantPoolTest, AConstantInThePlaceOfAFreedOneIsAnother) {
  ConstantPool pool = *ConstantPool::Create(GetParam());
  for (int k = 0; k < 50; ++k) {
    EXPECT_EQ(*pool.Add(Floats({static_cast<double>(k)})), k * 64);
  }
}

}  // namespace
}  // namespace hone::compiler
