#include "ir/kept_panels.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "ir/hash.h"
#include "ir/panel_product.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ir/workload_cost.h"

namespace hone::ir {
namespace {

using ::testing::HasSubstr;

std::string Product(const std::string& fact) {
  return "workload 1\nx0: f32[8,64] input range(-1,1)\nx1: f32[64,40] constant" + fact +
         "\ns0: f32[8,40] output = sum[r0:64] (x0[i0, r0] * x1[r0, i1])\n";
}

constexpr char kFact[] = " panels(1,16,[6,6,6,7,7,7,8,8],5)";

TEST(KeptPanels, TheFactIsPartOfTheText) {
  const auto workload = ParseWorkload(Product(kFact));
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_TRUE(Verify(*workload).ok());
  EXPECT_EQ(ToText(*workload), Product(kFact));
  const auto dense = ParseWorkload(Product(""));
  EXPECT_EQ(ToText(*dense), Product(""));
  EXPECT_NE(StructuralHash(*workload).ToHex(), StructuralHash(*dense).ToHex());
  EXPECT_EQ(PanelsOf(dense->tensors[1]), std::nullopt);
  const std::optional<KeptPanels> panels = PanelsOf(workload->tensors[1]);
  ASSERT_TRUE(panels.has_value());
  EXPECT_EQ(panels->dim, 1);
  EXPECT_EQ(panels->groups, (std::array<int, 8>{6, 6, 6, 7, 7, 7, 8, 8}));
  EXPECT_EQ(panels->values, 5);
}

TEST(KeptPanels, WrongFactsAreRefused) {
  const auto why = [](const std::string& fact) {
    const auto workload = ParseWorkload(Product(fact));
    if (!workload.ok()) return std::string(workload.status().message());
    return std::string(Verify(*workload).message());
  };
  EXPECT_THAT(why(" panels(1,16,[6,6,6],5)"), HasSubstr("between eighths"));
  EXPECT_THAT(why(" panels(1,16,[6,6,6,7,7,7,8,8])"), HasSubstr("after the eighths"));
  EXPECT_THAT(why(" panels(1,16,[6,6,6,7,7,7,8,-8],5)"), HasSubstr("out of range"));
  EXPECT_THAT(why(" panels(2,16,[6,6,6,7,7,7,8,8],5)"), HasSubstr("no matrix of such columns"));
  EXPECT_THAT(why(" panels(1,8,[6,6,6,7,7,7,8,8],5)"), HasSubstr("panels of 8 columns"));
  EXPECT_THAT(why(" panels(1,16,[6,6,6,7,7,7,8,4],5)"), HasSubstr("in no order"));
  EXPECT_THAT(why(" panels(1,16,[6,6,6,7,7,7,8,33],5)"), HasSubstr("more than there is"));
}

// Three panels, the last of 8 columns: they keep 1, 64 and 0 groups of 64, and 1, 128 and 0 values.
TEST(KeptPanels, CountsGroupsAndValues) {
  for (const bool turned : {false, true}) {
    constexpr int64_t kTerms = 64, kColumns = 40;
    std::vector<float> values(kTerms * kColumns);
    const auto at = [&](int64_t k, int64_t n) -> float& {
      return values[static_cast<size_t>(turned ? n * kTerms + k : k * kColumns + n)];
    };
    at(5, 3) = 1;
    for (int64_t k = 0; k < kTerms; ++k) at(k, 16 + k % 16) = at(k, 16 + (k + 1) % 16) = -2;
    at(7, 39) = -0.0F;
    Tensor tensor{.kind = TensorKind::kConstant};
    tensor.shape = turned ? std::vector<int64_t>{kColumns, kTerms}
                          : std::vector<int64_t>{kTerms, kColumns};
    const int dim = turned ? 0 : 1;
    const std::optional<MatrixForm> matrix = MatrixOf(tensor, dim);
    ASSERT_TRUE(matrix.has_value());
    const KeptPanels panels = CountPanels(*matrix, dim, values);
    EXPECT_EQ(panels.groups, (std::array<int, 8>{0, 0, 0, 0, 0, 1, 1, 32}));
    EXPECT_EQ(panels.values, 4);
    EXPECT_EQ(MostTerms(panels, *matrix), kTerms);
  }
}

TEST(KeptPanels, MadeUpZerosHaveTheCounts) {
  const auto workload = ParseWorkload(Product(" panels(1,16,[3,3,3,16,16,16,24,24],20)"));
  const Tensor& tensor = workload->tensors[1];
  std::vector<float> values(static_cast<size_t>(tensor.NumElements()), 1);
  MakeZeros(ZerosOf(tensor), 7, values);
  const KeptPanels made = CountPanels(*MatrixOf(tensor, 1), 1, values);
  // The three panels are in the first, the sixth and the last eighth.
  EXPECT_EQ(made.groups, (std::array<int, 8>{3, 3, 3, 3, 3, 16, 16, 24}));
  std::vector<float> again(values.size(), 1);
  MakeZeros(ZerosOf(tensor), 7, again);
  EXPECT_EQ(again, values);
  EXPECT_TRUE(ZerosOf(tensor).Fits(tensor.NumElements()));
  EXPECT_FALSE(ZerosOf(tensor).Fits(tensor.NumElements() - 1));
}

TEST(KeptPanels, ZerosCostNothing) {
  const auto workload = ParseWorkload(Product(" panels(1,16,[8,8,8,8,8,8,8,8],8)"));
  const auto dense = ParseWorkload(Product(""));
  EXPECT_DOUBLE_EQ(CostOf(*workload).flop(), CostOf(*dense).flop() / 4);
}

TEST(PanelProduct, IsASumOverOneAxisTimesAConstant) {
  const auto found = [](const std::string& text) {
    const auto workload = ParseWorkload(text);
    EXPECT_TRUE(workload.ok()) << workload.status();
    return FindPanelProduct(*workload, 0);
  };
  const std::optional<PanelProduct> product = found(Product(""));
  ASSERT_TRUE(product.has_value());
  EXPECT_EQ(product->weights, 1);
  EXPECT_EQ(product->dim, 1);
  EXPECT_EQ(product->column, 1);
  EXPECT_EQ(product->term, 2);
  // A convolution of one pixel is such a product, one of nine is none.
  EXPECT_TRUE(found("workload 1\nx0: f32[1,4,4,8] input range(-1,1)\n"
                    "x1: f32[16,8,1,1] constant\ns0: f32[1,4,4,16] output = "
                    "sum[r0:1,r1:1,r2:8] (x0[i0, i1 + r0, i2 + r1, r2] * x1[i3, r2, r0, r1])\n"));
  EXPECT_FALSE(found("workload 1\nx0: f32[1,6,6,8] input range(-1,1)\n"
                     "x1: f32[16,8,3,3] constant\ns0: f32[1,4,4,16] output = "
                     "sum[r0:3,r1:3,r2:8] (x0[i0, i1 + r0, i2 + r1, r2] * x1[i3, r2, r0, r1])\n"));
  // Each column has its own factor.
  EXPECT_FALSE(found("workload 1\nx0: f32[16,8] input range(-1,1)\nx1: f32[8,16] constant\n"
                     "s0: f32[4,16] output = sum[r0:8] (x0[i1, r0] * x1[r0, i1])\n"));
}

}  // namespace
}  // namespace hone::ir
