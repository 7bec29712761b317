#include "compiler/constant_pool.h"

#include <cstring>

#include "gtest/gtest.h"

namespace hone::compiler {
namespace {

graph::ConstantPtr Floats(const std::vector<double>& values) {
  return graph::MakeConstant(ir::DType::kF32, {static_cast<int64_t>(values.size())}, values);
}

TEST(ConstantPoolTest, ConstantsLieOneAfterTheOtherAligned) {
  ConstantPool pool;
  EXPECT_EQ(pool.Add(Floats({1, 2, 3})), 0);
  EXPECT_EQ(pool.Add(Floats(std::vector<double>(17, 4))), 64);
  EXPECT_EQ(pool.Add(Floats({5})), 192);
  EXPECT_EQ(pool.bytes(), 256);
  const std::vector<std::byte> packed = pool.Pack();
  ASSERT_EQ(packed.size(), 256u);
  float value = 0;
  std::memcpy(&value, packed.data() + 8, 4);
  EXPECT_EQ(value, 3);
  std::memcpy(&value, packed.data() + 64 + 16 * 4, 4);
  EXPECT_EQ(value, 4);
  std::memcpy(&value, packed.data() + 12, 4);  // between two constants
  EXPECT_EQ(value, 0);
}

TEST(ConstantPoolTest, EqualBytesAreStoredOnce) {
  ConstantPool pool;
  const graph::ConstantPtr tied = Floats({1, 2});
  EXPECT_EQ(pool.Add(tied), 0);
  EXPECT_EQ(pool.Add(Floats({3})), 64);
  EXPECT_EQ(pool.Add(tied), 0);
  EXPECT_EQ(pool.Add(Floats({1, 2})), 0);
  EXPECT_EQ(pool.Add(Floats({1, 2, 0})), 128);
  EXPECT_EQ(pool.bytes(), 192);
}

}  // namespace
}  // namespace hone::compiler
