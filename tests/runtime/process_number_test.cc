#include "runtime/process_number.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "tests/runtime/child.h"

namespace hone::runtime {
namespace {

TEST(ProcessNumber, IsAnotherInEachChildAndStaysTheSameThere) {
  const uint64_t here = ProcessNumber();
  std::thread([&] { EXPECT_EQ(ProcessNumber(), here); }).join();
  EXPECT_EQ(testing::InChild([&] {
              const uint64_t child = ProcessNumber();
              if (child == here || ProcessNumber() != child) return 1;
              const int grandchild = testing::InChild([&] {
                const uint64_t number = ProcessNumber();
                return number != here && number != child ? 7 : 2;
              });
              return grandchild == 7 && ProcessNumber() == child ? 7 : 3;
            }),
            7);
  EXPECT_EQ(ProcessNumber(), here);
}

// pthread_atfork would not see it.
TEST(ProcessNumber, IsAnotherInAChildThatTheCLibraryKnowsNothingOf) {
  const uint64_t here = ProcessNumber();
  const auto child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, 0, 0, 0));
  if (child == 0) ::syscall(SYS_exit_group, ProcessNumber() != here ? 7 : 1);
  int result = -1;
  ASSERT_EQ(::waitpid(child, &result, 0), child);
  EXPECT_TRUE(WIFEXITED(result) && WEXITSTATUS(result) == 7) << result;
}

}  // namespace
}  // namespace hone::runtime
