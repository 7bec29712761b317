#include "measure/process_load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

#include "base/core/fake_clock.h"
#include "base/subprocess.h"

namespace hone::measure {
namespace {

/// A folder that looks like /proc to ForeignLoad: times in ticks of 10 ms.
class FakeProc {
 public:
  FakeProc() {
    std::string path = (std::filesystem::temp_directory_path() / "hone-proc-XXXXXX").string();
    EXPECT_NE(::mkdtemp(path.data()), nullptr);
    path_ = path;
  }
  ~FakeProc() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

  void Busy(int user, int idle, int steal) const {
    std::ofstream(path_ + "/stat")
        << "cpu  " << user << " 0 0 " << idle << " 0 0 0 " << steal << " 0 0\ncpu0 1 1 1 1\n";
  }
  void Process(int pid, int parent, int user, int of_children) const {
    std::filesystem::create_directories(path_ + "/" + std::to_string(pid));
    std::ofstream(path_ + "/" + std::to_string(pid) + "/stat")
        << pid << " (a name) with) S " << parent << " 0 0 0 0 0 0 0 0 0 " << user << " 0 "
        << of_children << " 0 20 0 1 0 0\n";
  }

 private:
  std::string path_;
};

TEST(ForeignLoadTest, IsWhatNeitherWeNorOurChildrenUse) {
  const FakeProc proc;
  const int self = ::getpid();
  FakeClock clock;
  proc.Busy(1000, 5000, 0);
  proc.Process(self, 1, 100, 7);
  proc.Process(self + 1, self, 50, 0);
  proc.Process(self + 2, 1, 500, 0);
  ForeignLoad load(clock, proc.path());
  EXPECT_FALSE(load.SinceLast().has_value()) << "too soon";
  clock.AdvanceNs(1'000'000'000);
  // 1.9 CPU seconds of work and stolen time: 0.5 ours, 0.4 our child's, 1.0 others'.
  proc.Busy(1160, 5000, 30);
  proc.Process(self, 1, 150, 7);
  proc.Process(self + 1, self, 90, 0);
  proc.Process(self + 2, 1, 570, 0);
  const auto foreign = load.SinceLast();
  ASSERT_TRUE(foreign.has_value());
  EXPECT_NEAR(*foreign, 1.0, 1e-6);
  EXPECT_GT(*foreign, ForeignLoad::kDisturbing);
}

TEST(ForeignLoadTest, AChildThatEndsDoesNotCountTwice) {
  const FakeProc proc;
  const int self = ::getpid();
  FakeClock clock;
  proc.Busy(0, 0, 0);
  proc.Process(self, 1, 0, 0);
  proc.Process(self + 1, self, 100, 0);
  ForeignLoad load(clock, proc.path());
  clock.AdvanceNs(1'000'000'000);
  proc.Busy(20, 0, 0);
  std::filesystem::remove_all(proc.path() + "/" + std::to_string(self + 1));
  proc.Process(self, 1, 0, 120);
  EXPECT_NEAR(load.SinceLast().value_or(-1), 0.0, 1e-6);
}

TEST(ForeignLoadTest, WithoutProcNothingIsKnown) {
  FakeClock clock;
  ForeignLoad load(clock, "/nowhere");
  clock.AdvanceNs(1'000'000'000);
  EXPECT_FALSE(load.SinceLast().has_value());
  EXPECT_FALSE(CpuSecondsOf(1, "/nowhere").has_value());
}

TEST(CpuShareTest, TellsRunningFromWaitingForACpu) {
  const FakeProc proc;
  const auto thread = [&](const std::string& folder, int64_t ran_ns, int64_t queued_ns) {
    std::filesystem::create_directories(proc.path() + "/" + folder);
    std::ofstream(proc.path() + "/" + folder + "/schedstat") << ran_ns << " " << queued_ns << " 3";
  };
  thread("thread-self", 5, 100);
  thread("77/task/77", 1000, 10);
  thread("77/task/78", 9000, 20);
  const CpuShare share(77, proc.path());
  thread("thread-self", 5'000, 101);  // what who asks does is not the process's running
  thread("77/task/77", 1300, 30);
  thread("77/task/78", 9200, 24);
  thread("77/task/79", 250, 1);
  const auto used = share.SinceBegun();
  ASSERT_TRUE(used.has_value());
  EXPECT_EQ(used->ran_ns, 300) << "the busiest thread";
  EXPECT_EQ(used->queued_ns, 1 + 20 + 4 + 1) << "all of them, and who asks";
  EXPECT_FALSE(CpuShare(78, proc.path()).SinceBegun().has_value()) << "no such process";
}

// A job that runs hot ends, though nobody looks at the clock.
TEST(LimitCpuTimeTest, EndsWhatUsesMore) {
  SubprocessOptions options;
  options.argv = {"/bin/sh", "-c", "while :; do :; done"};
  options.standard_input = ChildStream::kNull;
  auto child = Subprocess::Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  LimitCpuTime(child->pid(), 0);
  const auto exit = child->Wait(SystemMonotonicClock(), 30'000'000'000);
  ASSERT_TRUE(exit.ok() && exit->has_value());
  EXPECT_EQ((*exit)->signal, SIGXCPU) << (*exit)->ToString();
}

TEST(LimitFilesTest, LowersAndRaisesBelowTheLimitsOfTheStart) {
  SubprocessOptions spawn{.argv = {"/bin/cat"}};
  spawn.limits.open_files = 40;
  spawn.limits.file_bytes = 1 << 20;
  absl::StatusOr<Subprocess> child = Subprocess::Spawn(spawn);
  ASSERT_TRUE(child.ok()) << child.status();
  const auto limit_of = [&](__rlimit_resource resource) {
    rlimit limit{};
    EXPECT_EQ(::prlimit(child->pid(), resource, nullptr, &limit), 0);
    return limit.rlim_cur;
  };
  LimitFiles(child->pid(), 20, 4096);
  EXPECT_EQ(limit_of(RLIMIT_NOFILE), 20u);
  EXPECT_EQ(limit_of(RLIMIT_FSIZE), 4096u);
  LimitFiles(child->pid(), 30, int64_t{1} << 30);
  EXPECT_EQ(limit_of(RLIMIT_NOFILE), 30u);
  EXPECT_EQ(limit_of(RLIMIT_FSIZE), 1u << 20);
}

}  // namespace
}  // namespace hone::measure
