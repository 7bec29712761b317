#include "measure/fill.h"

#include <algorithm>
#include <set>
#include <vector>

#include "gtest/gtest.h"

#include "ir/tensor_buffer.h"

namespace hone::measure {
namespace {

std::vector<double> Filled(ir::DType dtype, double low, double high, uint64_t seed, int tensor,
                           int64_t count = 4001) {
  ir::TensorBuffer buffer = ir::TensorBuffer::Zeros(dtype, {count});
  FillTensor(dtype, low, high, seed, tensor, std::as_writable_bytes(std::span(buffer.bytes)));
  return buffer.ToDoubles();
}

TEST(FillTest, EveryDtypeStaysInsideItsRange) {
  for (int d = 0; d < ir::kNumDTypes; ++d) {
    const auto dtype = static_cast<ir::DType>(d);
    SCOPED_TRACE(std::string(ir::ToString(dtype)));
    const double high = ir::IsBool(dtype) ? 2 : 7;
    const std::vector<double> values = Filled(dtype, 0, high, 3, 0);
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    EXPECT_GE(*least, 0);
    // Rounding to 16 bits may reach the end of the range.
    if (ir::SizeOf(dtype) == 2 && ir::IsFloat(dtype)) {
      EXPECT_LE(*most, high);
    } else {
      EXPECT_LT(*most, high);
    }
    EXPECT_GT(*most - *least, 0.8 * (high - 1)) << "hardly any spread";
  }
}

TEST(FillTest, IntegersTakeEveryValueOfTheRangeAndNoOther) {
  const std::vector<double> values = Filled(ir::DType::kI64, -2, 3, 1, 0);
  EXPECT_EQ(std::set<double>(values.begin(), values.end()), (std::set<double>{-2, -1, 0, 1, 2}));
  const std::vector<double> bytes = Filled(ir::DType::kU8, 0, 256, 1, 0, 40000);
  EXPECT_EQ(std::set<double>(bytes.begin(), bytes.end()).size(), 256u);
}

TEST(FillTest, AnEmptyRangeIsItsLowEnd) {
  for (const double value : Filled(ir::DType::kF32, 4, 4, 1, 0)) EXPECT_EQ(value, 4);
  for (const double value : Filled(ir::DType::kI32, 4, 4, 1, 0)) EXPECT_EQ(value, 4);
}

TEST(FillTest, FloatsNeverReachTheirHighEnd) {
  // Between neighbouring floats, where rounding would hit `high` half the time.
  const double low = 1;
  const double high = 1 + 0x1p-23;
  for (const double value : Filled(ir::DType::kF32, low, high, 5, 0)) EXPECT_EQ(value, low);
}

TEST(FillTest, SeedAndTensorDecideAlone) {
  const std::vector<double> values = Filled(ir::DType::kF32, -1, 1, 3, 2);
  EXPECT_EQ(Filled(ir::DType::kF32, -1, 1, 3, 2), values);
  EXPECT_NE(Filled(ir::DType::kF32, -1, 1, 4, 2), values);
  EXPECT_NE(Filled(ir::DType::kF32, -1, 1, 3, 1), values);
}

TEST(FillTest, ZerosAreWhereTheTensorHasThem) {
  ir::TensorBuffer buffer = ir::TensorBuffer::Zeros(ir::DType::kF32, {64, 32});
  const auto bytes = std::as_writable_bytes(std::span(buffer.bytes));
  const auto fill = [&](const ir::ZeroPattern& zeros, uint64_t seed) {
    FillTensor(ir::DType::kF32, 1, 2, 3, 0, bytes);
    FillZeros(zeros, seed, 0, bytes);
    return buffer.ToDoubles();
  };
  const ir::ZeroPattern zeros{.columns = 32,
                              .terms = 64,
                              .column_stride = 1,
                              .term_stride = 32,
                              .groups = {8, 8, 8, 8, 8, 8, 8, 8},
                              .values = 8};
  const std::vector<double> values = fill(zeros, 3);
  EXPECT_EQ(std::ranges::count(values, 0), 64 * 32 * 3 / 4);
  EXPECT_EQ(fill(zeros, 3), values);
  EXPECT_NE(fill(zeros, 4), values);
  EXPECT_EQ(std::ranges::count(fill({}, 3), 0), 0);
}

}  // namespace
}  // namespace hone::measure
