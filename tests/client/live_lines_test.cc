#include "client/live_lines.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/client/screen.h"

namespace hone::client {
namespace {

using ::testing::ElementsAre;
using testing::Screen;

TEST(LiveLinesTest, CutsBetweenCharacters) {
  EXPECT_EQ(CutToCells("kernel", 6), "kernel");
  EXPECT_EQ(CutToCells("kernel", 5), "kern…");
  EXPECT_EQ(CutToCells("", 0), "");
  EXPECT_EQ(CutToCells("kernel", 0), "");
  // Two, three and four bytes; what lies beyond U+1100 may take two cells.
  EXPECT_EQ(CutToCells("é×µé×", 4), "é×µ…");
  EXPECT_EQ(CutToCells("层归一化", 8), "层归一化");
  EXPECT_EQ(CutToCells("层归一化", 7), "层归一…");
  EXPECT_EQ(CutToCells("层归一化", 6), "层归…");
  EXPECT_EQ(CutToCells("a\xf0\x9f\x8e\x89z", 3), "a…");
  EXPECT_EQ(CellsOf("é层"), 3U);
}

TEST(LiveLinesTest, NamesAreCutBetweenWords) {
  EXPECT_EQ(CutToWords("conv 3x3 + relu", 15), "conv 3x3 + relu");
  EXPECT_EQ(CutToWords("conv 3x3 + relu", 14), "conv 3x3 + …");
  EXPECT_EQ(CutToWords("conv 3x3 + relu", 11), "conv 3x3 …");
  EXPECT_EQ(CutToWords("conv 3x3 + relu", 6), "conv …");
  EXPECT_EQ(CutToWords("conv 3x3 + relu", 5), "conv…") << "not even one word fits beside the mark";
  EXPECT_EQ(CutToWords("a\nb c", 4), "a?b…");
}

TEST(LiveLinesTest, NothingInANameMovesTheCursor) {
  EXPECT_EQ(CutToCells("a\nb\x1b[2Jc\td\x7f", 40), "a?b?[2Jc?d?");
  EXPECT_EQ(CutToCells("\xff\xc3", 40), "??") << "no UTF-8";
  EXPECT_EQ(CutToCells("\xc2\x9b"
                       "31m",
                       40),
            "?31m")
      << "a control character of two bytes";
}

TEST(LiveLinesTest, PacksWithoutLosingAnything) {
  EXPECT_THAT(PackIntoLines({"aa", "bb", "cc"}, "; ", 6), ElementsAre("aa; bb", "cc"));
  EXPECT_THAT(PackIntoLines({"aa", "bb", "cc"}, "; ", 5), ElementsAre("aa", "bb", "cc"));
  EXPECT_THAT(PackIntoLines({"aaaaaa", "b"}, "; ", 3), ElementsAre("aaaaaa", "b"));
  EXPECT_TRUE(PackIntoLines({}, "; ", 3).empty());
}

TEST(LiveLinesTest, AFrameReplacesTheLastOneWhateverItsLength) {
  const ScreenSize size{.columns = 20, .rows = 6};
  Screen screen(20, 6);
  LiveLines lines;
  screen.Write("before\n");
  const std::string wide(50, 'w');
  screen.Write(lines.Frame({"one", wide, "three"}, size));
  EXPECT_THAT(screen.Lines(), ElementsAre("before", "one", "wwwwwwwwwwwwwwwwww…", "three"));
  screen.Write(lines.Frame({"1", "2"}, size));
  EXPECT_THAT(screen.Lines(), ElementsAre("before", "1", "2"));
  // More than there are rows: the end of it, and no rest of it scrolls away.
  for (int i = 0; i < 3; ++i) screen.Write(lines.Frame({"a", "b", "c", "d", "e", "f", "g"}, size));
  EXPECT_THAT(screen.Lines(), ElementsAre("c", "d", "e", "f", "g"));
  screen.Write(lines.Frame({"last"}, size));
  screen.Write(lines.Erase());
  EXPECT_TRUE(screen.Lines().empty());
  EXPECT_EQ(lines.Erase(), "");
  EXPECT_EQ(screen.wrapped(), 0);
}

// That the model of a screen would show what this is about.
TEST(ScreenTest, ALineThatIsTooWideWraps) {
  Screen screen(4, 3);
  screen.Write("abcdef\n");
  EXPECT_THAT(screen.Lines(), ElementsAre("abcd", "ef"));
  EXPECT_EQ(screen.wrapped(), 1);
  screen.Write("\x1b[1F\x1b[J");
  EXPECT_THAT(screen.Lines(), ElementsAre("abcd")) << "a rest stays";
  screen.Write("1\r\n2\r\n3\r\n");
  EXPECT_THAT(screen.Lines(), ElementsAre("2", "3"));
}

}  // namespace
}  // namespace hone::client
