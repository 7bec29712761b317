#include "base/core/thread_name.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace hone {
namespace {

int NiceOfThisThread() { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); }

/// What `act` leaves a thread of its own with.
template <typename Act>
int NiceAfter(const Act& act) {
  int nice = 0;
  std::thread([&] {
    act();
    nice = NiceOfThisThread();
  }).join();
  return nice;
}

TEST(ThreadName, IsCutAtFifteenCharacters) {
  std::array<char, 16> name{};
  std::thread([&] {
    NameThisThread("a-very-long-name-of-a-thread");
    EXPECT_EQ(::pthread_getname_np(::pthread_self(), name.data(), name.size()), 0);
  }).join();
  EXPECT_EQ(std::string(name.data()), "a-very-long-nam");
}

TEST(ThreadPriority, IsLoweredOfThatThreadAlone) {
  const int before = NiceOfThisThread();
  EXPECT_EQ(NiceAfter([] { LowerThisThread(); }), std::max(before, 10));
  EXPECT_EQ(NiceOfThisThread(), before);
}

TEST(ThreadPriority, IsRaisedWhereThatIsAllowedAndElsewhereNothingHappens) {
  const int before = NiceOfThisThread();
  // Another thread is asked, since a raised one that may not be raised again would stay so.
  const int allowed =
      NiceAfter([] { (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), -15); });
  EXPECT_EQ(NiceAfter([] { RaiseThisThread(); }), std::min(before, allowed));
  EXPECT_TRUE(allowed == -15 || allowed == before) << allowed;
  EXPECT_EQ(NiceOfThisThread(), before);
}

}  // namespace
}  // namespace hone
