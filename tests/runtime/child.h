#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iterator>

namespace hone::runtime::testing {

inline int ThreadsOfThisProcess() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

/// Exit status of a child process that does `body`; 255 when it did not end by itself.
template <typename Body>
int InChild(const Body& body) {
  std::fflush(nullptr);  // what waits to be written is the parent's
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);  // a child that hangs is ended
    ::_exit(body());
  }
  int result = -1;
  EXPECT_EQ(::waitpid(child, &result, 0), child);
  return WIFEXITED(result) ? WEXITSTATUS(result) : 255;
}

}  // namespace hone::runtime::testing
