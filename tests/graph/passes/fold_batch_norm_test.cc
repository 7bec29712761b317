#include "gtest/gtest.h"

#include "graph/passes/passes.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph {
namespace {

using testing::ExpectRewrite;
using testing::TestGraph;
using Shape = std::vector<int64_t>;

TEST(FoldBatchNormTest, FoldsIntoConvolutions) {
  TestGraph t;
  t.Output(t.Relu(t.BatchNorm(t.Conv(t.Input({1, 3, 5, 5}), 4, 3, 1, 1))), "y");
  ExpectRewrite(t.graph, FoldBatchNorm, R"(
graph test
%0:f32[1,3,5,5] = input input0
%1:f32[4,3,3,3] = constant
%2:f32[4] = constant {-0.52766436,-0.5293867,-0.82103914,0.5362612}
%3:f32[1,4,5,5] = Conv(%0, %1, %2) {dilations=[1,1] group=1 layout=nchw pads=[1,1,1,1]
    strides=[1,1]}
%4:f32[4] = constant {1.2182064,1.1985116,1.0395966,0.79261416}
%5:f32[4] = constant {0.5751337,0.56042266,-0.041670606,-0.56410646}
%6:f32[4] = constant {0.7059265,-0.9014584,-0.416122,0.08009116}
%7:f32[4] = constant {0.8773136,0.6403102,1.4970342,0.5729015}
%8:f32[1,4,5,5] = BatchNorm(%3, %4, %5, %6, %7) {epsilon=1e-05 layout=nchw}
%9:f32[] = constant {0}
%10:f32[1,4,5,5] = Binary(%8, %9) {fn=max}
output %10 y
)",
                R"(
graph test
%0:f32[1,3,5,5] = input input0
%1:f32[4,3,3,3] = constant
%2:f32[4] = constant {-1.0292643,1.1176986,-0.38571438,-0.08641793}
%3:f32[1,4,5,5] = Conv(%0, %1, %2) {dilations=[1,1] group=1 layout=nchw pads=[1,1,1,1]
    strides=[1,1]}
%4:f32[] = constant {0}
%5:f32[1,4,5,5] = Binary(%3, %4) {fn=max}
output %5 y
)");
}

TEST(FoldBatchNormTest, FoldsIntoMatrixProducts) {
  TestGraph t;
  const ValueId x = t.Linear(t.Input({2, 6}), 4);
  t.Output(t.Binary("mul", t.BatchNorm(x), t.Scalar(3)), "y");
  ExpectRewrite(t.graph, FoldBatchNorm, R"(
graph test
%0:f32[2,6] = input input0
%1:f32[6,4] = constant
%2:f32[2,4] = MatMul(%0, %1)
%3:f32[4] = constant {-0.1911182,-0.57611865,-0.2250102,0.70886254}
%4:f32[2,4] = Binary(%2, %3) {fn=add}
%5:f32[4] = constant {1.2511431,1.4822458,0.510982,1.3812464}
%6:f32[4] = constant {-0.144082,-0.21012995,0.29828638,-0.52834535}
%7:f32[4] = constant {-0.5055419,0.6749332,-0.23188369,-0.061723564}
%8:f32[4] = constant {0.5837775,0.5188568,0.99440324,1.1354996}
%9:f32[2,4] = BatchNorm(%4, %5, %6, %7, %8) {epsilon=1e-05 layout=nchw}
%10:f32[] = constant {3}
%11:f32[2,4] = Binary(%9, %10) {fn=mul}
output %11 y
)",
                R"(
graph test
%0:f32[2,6] = input input0
%1:f32[6,4] = constant
%2:f32[2,4] = MatMul(%0, %1)
%3:f32[4] = constant {1.1123545,-8.353439,0.90542537,1.411491}
%4:f32[2,4] = Binary(%2, %3) {fn=add}
output %4 y
)");
}

TEST(FoldBatchNormTest, FoldsIntoTransposedConvolutions) {
  TestGraph t;
  const ValueId y =
      t.Op("ConvTranspose", {t.Input({1, 3, 4, 4}), t.Constant({3, 2, 2, 2}), t.Constant({2})},
           {{"strides", Shape{2, 2}}, {"layout", std::string("nchw")}});
  t.Output(t.BatchNorm(y), "y");
  ExpectRewrite(t.graph, FoldBatchNorm, R"(
graph test
%0:f32[1,3,4,4] = input input0
%1:f32[3,2,2,2] = constant
%2:f32[2] = constant {-0.1911182,-0.57611865}
%3:f32[1,2,8,8] = ConvTranspose(%0, %1, %2) {layout=nchw strides=[2,2]}
%4:f32[2] = constant {0.8874949,1.3544313}
%5:f32[2] = constant {0.5022862,0.9644916}
%6:f32[2] = constant {-0.9780361,0.76249295}
%7:f32[2] = constant {0.927959,0.894935}
%8:f32[1,2,8,8] = BatchNorm(%3, %4, %5, %6, %7) {epsilon=1e-05 layout=nchw}
output %8 y
)",
                R"(
graph test
%0:f32[1,3,4,4] = input input0
%1:f32[3,2,2,2] = constant
%2:f32[2] = constant {1.2272705,-0.9520285}
%3:f32[1,2,8,8] = ConvTranspose(%0, %1, %2) {layout=nchw strides=[2,2]}
output %3 y
)");
}

TEST(FoldBatchNormTest, BecomesScaleAndShiftElsewhere) {
  TestGraph t;
  t.Output(t.BatchNorm(t.Relu(t.Input({1, 4, 3, 3}))), "y");
  ExpectRewrite(t.graph, FoldBatchNorm, R"(
graph test
%0:f32[1,4,3,3] = input input0
%1:f32[] = constant {0}
%2:f32[1,4,3,3] = Binary(%0, %1) {fn=max}
%3:f32[4] = constant {1.2029219,1.0204366,1.0741057,0.8913286}
%4:f32[4] = constant {0.39435685,-0.71285594,-0.85790956,-0.23763111}
%5:f32[4] = constant {0.73430496,0.10341973,0.8651449,0.91443634}
%6:f32[4] = constant {1.4327728,1.1690968,1.0999334,1.3905423}
%7:f32[1,4,3,3] = BatchNorm(%2, %3, %4, %5, %6) {epsilon=1e-05 layout=nchw}
output %7 y
)",
                R"(
graph test
%0:f32[1,4,3,3] = input input0
%1:f32[] = constant {0}
%2:f32[1,4,3,3] = Binary(%0, %1) {fn=max}
%3:f32[4,1,1] = constant {1.0049565,0.9437543,1.024146,0.75586486}
%4:f32[1,4,3,3] = Binary(%2, %3) {fn=mul}
%5:f32[4,1,1] = constant {-0.34358767,-0.8104588,-1.7439443,-0.92882144}
%6:f32[1,4,3,3] = Binary(%4, %5) {fn=add}
output %6 y
)");
}

TEST(FoldBatchNormTest, LeavesAConvolutionThatOthersRead) {
  TestGraph t;
  const ValueId y = t.Conv(t.Input({1, 3, 4, 4}), 4, 1);
  t.Output(t.BatchNorm(y), "y");
  t.Output(t.Relu(y), "z");
  ExpectRewrite(t.graph, FoldBatchNorm, R"(
graph test
%0:f32[1,3,4,4] = input input0
%1:f32[4,3,1,1] = constant
%2:f32[4] = constant {0.8655454,0.33819357,0.19986682,0.78108454}
%3:f32[1,4,4,4] = Conv(%0, %1, %2) {dilations=[1,1] group=1 layout=nchw pads=[0,0,0,0]
    strides=[1,1]}
%4:f32[4] = constant {0.58045596,0.99135995,0.5458202,0.56377435}
%5:f32[4] = constant {-0.07353961,-0.0070524593,0.22158429,-0.30046716}
%6:f32[4] = constant {-0.1911182,-0.57611865,-0.2250102,0.70886254}
%7:f32[4] = constant {1.2511431,1.4822458,0.510982,1.3812464}
%8:f32[1,4,4,4] = BatchNorm(%3, %4, %5, %6, %7) {epsilon=1e-05 layout=nchw}
%9:f32[] = constant {0}
%10:f32[1,4,4,4] = Binary(%3, %9) {fn=max}
output %8 y
output %10 z
)",
                R"(
graph test
%0:f32[1,3,4,4] = input input0
%1:f32[4,3,1,1] = constant
%2:f32[4] = constant {0.8655454,0.33819357,0.19986682,0.78108454}
%3:f32[1,4,4,4] = Conv(%0, %1, %2) {dilations=[1,1] group=1 layout=nchw pads=[0,0,0,0]
    strides=[1,1]}
%4:f32[4,1,1] = constant {0.5189363,0.8142725,0.7635589,0.47969827}
%5:f32[1,4,4,4] = Binary(%3, %4) {fn=mul}
%6:f32[4,1,1] = constant {0.025638562,0.46206513,0.39339283,-0.6405073}
%7:f32[1,4,4,4] = Binary(%5, %6) {fn=add}
%8:f32[] = constant {0}
%9:f32[1,4,4,4] = Binary(%3, %8) {fn=max}
output %7 y
output %9 z
)");
}

}  // namespace
}  // namespace hone::graph
