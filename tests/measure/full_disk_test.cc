#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "ir/text.h"
#include "measure/candidate_builder.h"
#include "tests/measure/gemm_candidate.h"
#include "tests/test_paths.h"

// The linker's disks are full: the builder, which runs as always, has nowhere to link.
namespace hone::measure {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kTarget[] = "cpu:avx2,threads=1";

/// Why the calling thread could not be given file systems of its own, where /dev/shm and /tmp have
/// no byte free and hone-builder lies in /mnt; empty: it was. They end with the thread.
std::string FillDisksOfThisThread() {
  const std::string programs = hone::testing::BuildDir() + "/libexec/hone";
  const bool made = ::unshare(CLONE_NEWNS) == 0 &&
                    ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                    ::mount(programs.c_str(), "/mnt", nullptr, MS_BIND, nullptr) == 0;
  if (!made) return std::strerror(errno);
  for (const char* folder : {"/dev/shm", "/tmp"}) {
    if (::mount("hone", folder, "tmpfs", 0, "size=64k") != 0) return std::strerror(errno);
    std::ofstream(std::string(folder) + "/ballast") << std::string(64 << 10, 'x') << std::flush;
  }
  return "";
}

TEST(FullDiskTest, NothingIsSaidAboutACandidateThatCouldNotBeLinked) {
  std::string why = "the thread did not run";
  AttemptError error;
  absl::Status link;
  std::thread([&] {
    why = FillDisksOfThisThread();
    if (!why.empty()) return;
    const SystemMonotonicClock clock;
    BuilderOptions options;
    options.program = "/mnt/hone-builder";
    BuilderClient client(options, clock);
    CandidateBuilder builder(client, clock, BuildFor::kAny);
    const auto workload = ir::ParseWorkload(kGemm);
    ASSERT_TRUE(workload.ok()) << workload.status();
    error = builder.Build(*workload, kTarget, kPacked, 0, "", Keep::kNo).error;
    const auto objects = client.Build(
        {.target = kTarget, .kernels = {{kGemm, "", {}, "k"}}, .output = BuildOutput::kObjects});
    ASSERT_TRUE(objects.ok()) << objects.status();
    link = client.Link({kTarget, {objects->kernels[0].object}}).status();
  }).join();
  if (!why.empty()) GTEST_SKIP() << "no file systems of its own for a thread: " << why;
  EXPECT_EQ(error.outcome, Outcome::kWorkerLost) << error.message;
  EXPECT_THAT(error.message, AllOf(HasSubstr("no room to link in '/dev/shm/"), HasSubstr("'/tmp/"),
                                   HasSubstr("(0 KiB free); make room there")));
  EXPECT_EQ(link.code(), absl::StatusCode::kResourceExhausted) << link;
}

TEST(FullDiskTest, ABuilderThatStartsRemovesWhatKilledOnesLeft) {
  const std::string base = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  std::string left = base + "/hone-link-XXXXXX", fresh = left;
  ASSERT_NE(::mkdtemp(left.data()), nullptr) << left;
  ASSERT_NE(::mkdtemp(fresh.data()), nullptr) << fresh;
  const timespec long_ago[2] = {{.tv_sec = 1000, .tv_nsec = 0}, {.tv_sec = 1000, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, left.c_str(), long_ago, 0), 0);
  const SystemMonotonicClock clock;
  BuilderOptions options;
  options.program = hone::testing::BuildDir() + "/libexec/hone/hone-builder";
  EXPECT_TRUE(BuilderClient(options, clock).Build({}).ok());
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::remove(fresh));
}

}  // namespace
}  // namespace hone::measure
