#include "ir/lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "ir/combiner.h"
#include "tests/ir/nest.h"

namespace hone::ir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Two rows of `threads`, each with its number times its row's in a register, then 4 lanes meet.
class LanesTest : public testing::Test {
 protected:
  std::string Run(int64_t threads, const std::function<Stmt(Stmt)>& around = nullptr,
                  Combiner combiner = Combiner::kSum) {
    Nest n;
    const int y = n.Argument("s0", 2 * threads, false);
    const int mine = n.Memory("mine", Scope::kRegister, 1);
    const Stmt meet = CombineLanes(mine, Int(0), 4, combiner);
    const Expr number = V(1) * (V(0) + Int(1)) + Int(1);
    n.AddPhase(For(0, 2, LoopKind::kThreadY,
                   For(1, threads, LoopKind::kThreadX,
                       Block({Store(mine, Int(0), Cast(kF, number)), around ? around(meet) : meet,
                              Store(y, V(0) * Int(threads) + V(1), At(mine, Int(0)))}))));
    out_ = TensorBuffer::Zeros(kF, {2 * threads});
    return std::string(n.Run({&out_}).message());
  }
  std::vector<double> Out() const {
    std::vector<double> out;
    for (int64_t i = 0; i < out_.NumElements(); ++i) out.push_back(out_.DoubleAt(i));
    return out;
  }

  TensorBuffer out_;
};

TEST_F(LanesTest, EachHasWhatItsGroupMakesTogether) {
  EXPECT_EQ(Run(4), "");
  EXPECT_THAT(Out(), ElementsAre(10, 10, 10, 10, 16, 16, 16, 16));
  EXPECT_EQ(Run(4, nullptr, Combiner::kMax), "");
  EXPECT_THAT(Out(), ElementsAre(4, 4, 4, 4, 7, 7, 7, 7));
  EXPECT_EQ(Run(8), "");
  EXPECT_THAT(Out(), ElementsAre(10, 10, 10, 10, 26, 26, 26, 26, 16, 16, 16, 16, 48, 48, 48, 48));
}

TEST_F(LanesTest, AllOfAGroupCome) {
  EXPECT_EQ(Run(4, [](Stmt meet) { return If(Lt(V(0), Int(1)), meet); }), "") << "one row";
  EXPECT_THAT(Run(4, [](Stmt meet) { return If(Lt(V(1), Int(3)), meet); }),
              HasSubstr("lanes of a group that do not all come to it"));
  EXPECT_THAT(Run(3), HasSubstr("lanes of a group that do not all come to it"));
}

// Their meeting is no barrier: what one wrote to shared memory another may not read yet.
TEST_F(LanesTest, OrderNoMemory) {
  Nest n;
  const int y = n.Argument("s0", 4, false);
  const int mine = n.Memory("mine", Scope::kRegister, 1);
  const int all = n.Memory("all", Scope::kShared, 4);
  n.AddPhase(For(0, 4, LoopKind::kThreadX,
                 Block({Store(mine, Int(0), F(1)), Store(all, V(0), F(2)),
                        CombineLanes(mine, Int(0), 4, Combiner::kSum),
                        Store(y, V(0), At(all, Int(3) - V(0)))})));
  TensorBuffer out = TensorBuffer::Zeros(kF, {4});
  EXPECT_THAT(std::string(n.Run({&out}).message()), HasSubstr("races: "));
}

}  // namespace
}  // namespace hone::ir
