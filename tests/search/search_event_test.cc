#include "search/search_event.h"

#include <string>

#include "gtest/gtest.h"

namespace hone::search {
namespace {

constexpr Hash128 kStream{0, 7}, kOther{0x0123456789abcdef, 0xfedcba9876543210};

struct Golden {
  SearchEvent event;
  std::string type, text;
};

// What logs hold: a text that changes here makes every unfinished session unreadable.
const Golden kGoldens[] = {
    {JoinEvent{"8b902f146a"}, "join", "8b902f146a"},
    {ProposedEvent{3, 1, 18446744073709551615u, Proposer::kModel, {}}, "proposed",
     "3 1 18446744073709551615 model"},
    {ProposedEvent{3, 1, 5, Proposer::kDefault, kOther}, "proposed",
     "3 1 5 default 0123456789abcdeffedcba9876543210"},
    {ResultEvent{4, measure::Outcome::kOk, 1234.5, 0.25}, "result", "4 ok 1234.5 0.25"},
    {ResultEvent{4, measure::Outcome::kRunTimeout, 0, 1e-7}, "result", "4 run_timeout 0 1e-07"},
    {ResultEvent{4, measure::Outcome::kOk, 60.5, 0.25, 55, 0.0625}, "result",
     "4 ok 60.5 0.25 55 0.0625"},
    {ResultEvent{4, measure::Outcome::kOk, 60.5, 0.25, 55, 1}, "result", "4 ok 60.5 0.25 55 1"},
    {MemberEvent{kOther, 10, 1, 0, 0, {}}, "member", "0123456789abcdeffedcba9876543210 10 1 0"},
    {MemberEvent{kOther, 10, 1, 2, 7, {{kStream, 2, 1e9, 0.5, "ab"}, {kOther, 1, 0, 0, "cd"}}},
     "member",
     "0123456789abcdeffedcba9876543210 10 1 2 7\n"
     "00000000000000000000000000000007 2 1000000000 0.5 ab\n"
     "0123456789abcdeffedcba9876543210 1 0 0 cd"},
    {LeaveEvent{kOther}, "leave", "0123456789abcdeffedcba9876543210"},
    {ImportedEvent{2, 90}, "imported", "2 90"},
    {ComparedEvent{2, 1000.0 / 3, 250}, "compared", "2 333.3333333333333 250"},
    {FoundEvent{0, 0, 12.5}, "found", "0 0 12.5"},
    {VerdictEvent{1, TaskEnd::kWon, 1000.04, 500}, "verdict", "1 won 1000.0 500.0"},
    {VerdictEvent{1, TaskEnd::kLost, 1, 1}, "verdict", "1 lost 1.0 1.0"},
    {VerdictEvent{1, TaskEnd::kConfirmed, 1, 1}, "verdict", "1 confirmed 1.0 1.0"},
    {VerdictEvent{1, TaskEnd::kPutBack, 1, 1}, "verdict", "1 put_back 1.0 1.0"},
    {ModelEvent{"d16e57", 640}, "model", "d16e57 640"},
    {ElapsedEvent{1.5}, "elapsed", "1.500"},
    {OpeningEvent{}, "opening", ""},
    {OpenedEvent{}, "opened", ""},
    {InterruptedEvent{"interrupted"}, "interrupted", "interrupted"},
    {FinishedEvent{"time used up"}, "finished", "time used up"},
};

TEST(SearchEventTest, EachHasItsTextAndIsReadBackFromIt) {
  std::vector<bool> seen(std::variant_size_v<SearchEvent>);
  for (const Golden& golden : kGoldens) {
    const db::Event event = StreamEvent(kStream, golden.event);
    EXPECT_EQ(event.session, kStream);
    EXPECT_EQ(event.type, golden.type);
    EXPECT_EQ(event.payload, golden.text);
    const auto read = ParseEvent(event);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->index(), golden.event.index());
    EXPECT_EQ(StreamEvent(kStream, *read).payload, golden.text);
    seen[golden.event.index()] = true;
  }
  for (size_t i = 1; i < seen.size(); ++i) EXPECT_TRUE(seen[i]) << "type " << i << " has no golden";
}

TEST(SearchEventTest, WhatIsNotInItsFormIsRefusedAndNamed) {
  const std::pair<const char*, const char*> misfits[] = {
      {"proposed", "garbage"},
      {"proposed", "0 0 0 nobody"},
      {"proposed", "0 -1 0 random"},
      {"proposed", "0 0 0"},
      {"proposed", "0 0 0 random ab"},
      {"result", "0 perfect 1 1"},
      {"result", "0 ok nan 1"},
      {"result", "0 ok 1"},
      {"imported", "1"},
      {"verdict", "0 perhaps 1 1"},
      {"found", "0 inf 1"},
      {"elapsed", ""},
      {"elapsed", "an hour"},
      {"leave", "nobody"},
      {"model", "d16e57"},
      {"member", "0123456789abcdeffedcba9876543210 10 1 0\nab 1 1 1 cd"},
      {"compared", "99999999999999999999 1 1"}};
  for (const auto& [type, text] : misfits) {
    db::Event event;
    event.type = type;
    event.payload = text;
    const auto read = ParseEvent(event);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss) << type << " " << text;
    EXPECT_NE(read.status().message().find(text), std::string::npos);
  }
}

TEST(SearchEventTest, EventsOfOthersAreLeftToThem) {
  db::Event event;
  event.type = "model_verdict";
  event.payload = "whatever";
  const auto read = ParseEvent(event);
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(std::holds_alternative<std::monostate>(*read));
  EXPECT_FALSE(EventAs<VerdictEvent>(event));
}

}  // namespace
}  // namespace hone::search
