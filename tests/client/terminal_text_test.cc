#include "client/terminal_text.h"

#include "gtest/gtest.h"

namespace hone::client {
namespace {

TEST(TerminalText, WhatWouldSteerTheTerminalIsShown) {
  EXPECT_EQ(TerminalText("\x1b]0;mine\x07"), R"(\x1b]0;mine\x07)");
  EXPECT_EQ(TerminalText("one\ntwo\tthree\x7f"), R"(one\x0atwo\x09three\x7f)");
  EXPECT_EQ(TerminalText("csi \xc2\x9b end"), R"(csi \x9b end)");
  EXPECT_EQ(TerminalText("± 0.5 × é 漢"), "± 0.5 × é 漢");
}

}  // namespace
}  // namespace hone::client
