#include "base/shell_word.h"

#include "gtest/gtest.h"

#include "tests/client/run_hone.h"

namespace hone::client {
namespace {

TEST(ShellWordTest, AShellReadsTheWordBack) {
  for (const char* word : {"", "plain", "cpu:avx2,threads=1", "a b", "it's", "''", "$HOME", "`id`",
                           "a\"b", "x;y", "*", "~", "a\\b", "a\nb", "ö"}) {
    const auto run = testing::RunProcess(
        {"/bin/sh", "-c", std::string("printf '%s|' ") + ShellWord(word)}, "/dev/null");
    EXPECT_EQ(run.out, std::string(word) + "|");
  }
  EXPECT_EQ(ShellWord("cpu:avx2,threads=1"), "cpu:avx2,threads=1") << "no quotes without need";
}

}  // namespace
}  // namespace hone::client
