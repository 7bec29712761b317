#include "schedule/trace.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::schedule {
namespace {

using ::testing::HasSubstr;

std::string RoundTrip(const std::string& text) {
  const auto trace = ParseTrace(text);
  if (!trace.ok()) return "error: " + std::string(trace.status().message());
  const std::string printed = ToText(*trace);
  const auto again = ParseTrace(printed);
  if (!again.ok() || !(*again == *trace)) return "does not read back: " + printed;
  return printed;
}

TEST(TraceText, PrintsOneInstructionALine) {
  EXPECT_EQ(RoundTrip("split(s0.i1, [4,16])\ns2 = cache_write(s0, register, at=s0.i0.0)\n"),
            "split(s0.i1, [4,16])\ns2 = cache_write(s0, register, at=s0.i0.0)\n");
}

TEST(TraceText, ReadsBlanksCommentsAndSemicolons) {
  EXPECT_EQ(
      RoundTrip("# why\n  split ( s0.i1 ,[ 4 , 16 ] ,mask ) ; unroll(s0.i1.1)  # inner\r\n\n;;"),
      "split(s0.i1, [4,16], mask)\nunroll(s0.i1.1)\n");
}

TEST(TraceText, KeepsBlockedDimensions) {
  EXPECT_EQ(RoundTrip("s3 = pack(s1, x1, [i0/32, i1, i0%32])"),
            "s3 = pack(s1, x1, [i0/32,i1,i0%32])\n");
}

TEST(TraceText, KeepsNegativeNumbersAndEmptyArguments) {
  EXPECT_EQ(RoundTrip("partition(s0.i0, [1,-1]); split(s0.i1, -3); inline()"),
            "partition(s0.i0, [1,-1])\nsplit(s0.i1, -3)\ninline()\n");
}

TEST(TraceText, TheEmptyTextIsTheEmptyTrace) {
  const auto trace = ParseTrace(" \n # nothing\n");
  ASSERT_TRUE(trace.ok());
  EXPECT_TRUE(trace->instructions.empty());
  EXPECT_EQ(ToText(*trace), "");
}

TEST(TraceText, RefusalsNameLineAndColumn) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"split", "line 1, column 6: expected ("},
      {"split(s0.i0, 4", "expected , or )"},
      {"split(s0.i0, [4", "expected ]"},
      {"split(s0.i0,)", "expected a name or a number"},
      {"inline(s0)\n  = split(s0.i0)", "line 2, column 3: expected a name or a number"},
      {"s1 = = pack(s0)", "expected a name or a number"},
      {"inline(s0) inline(s1)", "expected the end of the instruction"},
      {"cache_read(s0, at=s1.i0, x0)", "a positional argument after a named one"},
      {"inline(s0)\n\xff(s0)", "line 2, column 1"},
  };
  for (const auto& [text, message] : cases) {
    const auto trace = ParseTrace(text);
    ASSERT_FALSE(trace.ok()) << text;
    EXPECT_EQ(trace.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(trace.status().message()), HasSubstr(message)) << text;
  }
}

TEST(TraceText, BoundsItsSize) {
  EXPECT_THAT(std::string(ParseTrace(std::string((1 << 20) + 1, ' ')).status().message()),
              HasSubstr("1 MiB"));
  std::string many;
  for (int i = 0; i < 4097; ++i) many += "inline(s0)\n";
  EXPECT_THAT(std::string(ParseTrace(many).status().message()), HasSubstr("4096 instructions"));
}

}  // namespace
}  // namespace hone::schedule
