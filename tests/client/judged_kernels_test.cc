#include "client/judged_kernels.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A log that knows one Trace for everything.
class OneTrace final : public compiler::TraceSource {
 public:
  absl::StatusOr<compiler::FoundTrace> Find(const ir::Workload&, const std::string&,
                                            const ir::Target&) override {
    return compiler::FoundTrace{
        .trace = "of the log", .rung = "exact", .record_id = "r", .threads = 2};
  }
};

TEST(WithWinnersTest, AWinnerGoesBeforeWhatTheLogPrefers) {
  OneTrace log;
  WithWinners winners(log, {{"a", "of the session"}, {"c", "of the log"}});
  EXPECT_EQ(winners.Find({}, "a", {})->trace, "of the session");
  EXPECT_EQ(winners.Find({}, "a", {})->rung, "exact");
  EXPECT_EQ(winners.Find({}, "a", {})->threads, 0) << "the log speaks of another Trace";
  EXPECT_EQ(winners.Find({}, "c", {})->threads, 2);
  EXPECT_EQ(winners.Find({}, "b", {})->trace, "of the log");
  EXPECT_EQ(winners.Find({}, "b", {})->record_id, "r");
}

/// Which of the tasks a, b, c are confirmed, and which put back.
class JudgedKernelsTest : public ::testing::Test {
 protected:
  JudgedKernelsTest() {
    for (const char* trace : {"ta", "tb", "tc"}) {
      search::TaskVerdict v;
      v.compared = v.replaced = true;
      v.trace = trace;
      verdicts_.push_back(v);
    }
  }
  std::vector<std::string> Confirmed() const {
    std::vector<std::string> confirmed;
    for (const int task : judged_.Confirmed(hashes_, verdicts_))
      confirmed.push_back(hashes_[static_cast<size_t>(task)]);
    return confirmed;
  }
  const std::set<std::string>& PutBack() const { return judged_.put_back(); }

  const std::vector<std::string> hashes_ = {"a", "b", "c"};
  std::vector<search::TaskVerdict> verdicts_;
  JudgedKernels judged_;
};

TEST_F(JudgedKernelsTest, OnlyTheVeryTraceThatRanIsConfirmed) {
  // b ran with another Trace, c with its default.
  judged_.Compared({{"a", "ta"}, {"b", "an older one"}}, {});
  EXPECT_THAT(Confirmed(), ElementsAre("a"));
  EXPECT_THAT(PutBack(), IsEmpty());
  // Nor what won nothing in this session.
  verdicts_[0].replaced = false;
  EXPECT_THAT(Confirmed(), IsEmpty());
}

TEST_F(JudgedKernelsTest, ASuspectThatNobodyHadTimeForIsNotConfirmed) {
  judged_.Compared({{"a", "ta"}, {"b", "tb"}, {"c", "tc"}}, {"a", "b"});
  EXPECT_THAT(Confirmed(), ElementsAre("c"));
  EXPECT_THAT(PutBack(), IsEmpty());
  // The second comparison clears one; there is no time for a third.
  judged_.ComparedAgain({"b", "c"});
  EXPECT_THAT(Confirmed(), ElementsAre("a", "c"));
  EXPECT_THAT(PutBack(), IsEmpty());
  judged_.PutBackSuspects();
  EXPECT_THAT(Confirmed(), ElementsAre("a", "c"));
  EXPECT_THAT(PutBack(), ElementsAre("b"));
}

// The record is the log's, not this session's: its Trace was in the model and loses all the same.
TEST_F(JudgedKernelsTest, WhatTheLogBroughtIsPutBackToo) {
  verdicts_[1] = {};
  judged_.Compared({{"a", "ta"}, {"b", "an older one"}}, {"b"});
  judged_.ComparedAgain({"b"});
  EXPECT_THAT(judged_.Tuned(), ElementsAre("a", "b"));
  judged_.PutBackSuspects();
  EXPECT_THAT(Confirmed(), ElementsAre("a"));
  EXPECT_THAT(PutBack(), ElementsAre("b"));
  EXPECT_THAT(judged_.Tuned(), ElementsAre("a"));
}

}  // namespace
}  // namespace hone::client
