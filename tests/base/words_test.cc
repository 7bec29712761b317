#include "base/core/words.h"

#include "gtest/gtest.h"

namespace hone {
namespace {

TEST(WordsTest, TakesATextApart) {
  const Hash128 one{1, 2}, two{3, 4};
  const std::string text = "word -3 2.5 " + one.ToHex() + " " + one.ToHex() + "," + two.ToHex() +
                           " - the rest of it\nnext 1\nlast";
  Words lines(text);
  Words words = lines.Line();
  EXPECT_EQ(words.Word(), "word");
  EXPECT_EQ(words.Number<int>(), -3);
  EXPECT_EQ(words.Number<double>(), 2.5);
  EXPECT_EQ(words.Hash(), one);
  EXPECT_EQ(words.Hashes(), (std::vector<Hash128>{one, two}));
  EXPECT_TRUE(words.Hashes().empty());
  EXPECT_EQ(words.Rest(), "the rest of it");
  EXPECT_FALSE(words.bad());
  Words next = lines.Line();
  EXPECT_EQ(next.Word(), "next");
  EXPECT_EQ(next.Number<uint64_t>(), 1u);
  EXPECT_TRUE(next.empty());
  EXPECT_EQ(lines.Line().Word(), "last");
  EXPECT_TRUE(lines.empty());
}

TEST(WordsTest, WhatDoesNotFitMakesItBadForGood) {
  for (const char* text : {"", " ", "x", "1.5", "1x", "-1", "99999999999999999999999"}) {
    Words words(text);
    EXPECT_EQ(words.bad(), false);
    words.Number<uint32_t>();
    EXPECT_TRUE(words.bad()) << text;
  }
  for (const char* text : {"inf", "nan", "1e999", "0x1p3"}) {
    Words words(text);
    words.Number<double>();
    EXPECT_TRUE(words.bad()) << text;
  }
  Words words("x 1");
  words.Hash();
  EXPECT_EQ(words.Number<int>(), 1);
  EXPECT_TRUE(words.bad());
  Words none("");
  none.Rest();
  EXPECT_TRUE(none.bad());
}

}  // namespace
}  // namespace hone
