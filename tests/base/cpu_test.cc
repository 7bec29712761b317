#include "base/core/cpu.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include "gtest/gtest.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

void Write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

class CpuFolderTest : public ::testing::Test {
 protected:
  CpuFolderTest() : root_(fs::path(::testing::TempDir()) / "hone_cpu_test") {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~CpuFolderTest() override { fs::remove_all(root_); }

  fs::path root_;
};

TEST(ParseCpuList, ReadsRangesAndRefusesNonsense) {
  EXPECT_EQ(ParseCpuList("0-3,8\n"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(ParseCpuList("5"), (std::vector<int>{5}));
  for (const char* bad : {"", "a", "3-1", "1,", "1;2", "-1", "1-", "99999"}) {
    EXPECT_TRUE(ParseCpuList(bad).empty()) << bad;
  }
}

TEST_F(CpuFolderTest, OnePerCoreTakesTheFirstAllowedSibling) {
  for (int cpu = 0; cpu < 4; ++cpu) {  // cores {0,4} {1,5} {2,6} {3,7}
    const std::string siblings = std::to_string(cpu) + "," + std::to_string(cpu + 4) + "\n";
    for (const int one : {cpu, cpu + 4}) {
      Write(root_ / ("cpu" + std::to_string(one)) / "topology/thread_siblings_list", siblings);
    }
  }
  EXPECT_EQ(OnePerCore({0, 1, 2, 3, 4, 5, 6, 7}, root_), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(OnePerCore({4, 5, 1}, root_), (std::vector<int>{4, 5}));
  EXPECT_EQ(OnePerCore({0, 9, 10}, root_), (std::vector<int>{0, 9, 10}));
}

TEST_F(CpuFolderTest, EfficiencyCoresAreLeftOutWhereThereAreOthers) {
  const std::vector<int> all = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(OnPerformanceCores(all, root_), all) << "one kind";
  Write(root_ / "cpu_core/cpus", "0-3\n");
  Write(root_ / "cpu_atom/cpus", "4-7\n");
  EXPECT_EQ(OnPerformanceCores(all, root_), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(OnPerformanceCores({3, 5}, root_), std::vector<int>{3});
  EXPECT_EQ(OnPerformanceCores({4, 6}, root_), (std::vector<int>{4, 6})) << "nothing else";
}

TEST_F(CpuFolderTest, NodesAreToldWhereThereAreSeveral) {
  const std::vector<int> all = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_TRUE(NodeOfEachCpu(all, root_).empty()) << "nothing says so";
  Write(root_ / "online", "0,2\n");
  Write(root_ / "node0/cpulist", "0-1,4\n");
  Write(root_ / "node2/cpulist", "2-3\n");
  EXPECT_EQ(NodeOfEachCpu(all, root_), (std::vector<int>{0, 0, 2, 2, 0}));
  EXPECT_EQ(NodeOfEachCpu({1, 2}, root_), (std::vector<int>{-1, 0, 2}));
  EXPECT_TRUE(NodeOfEachCpu({0, 4}, root_).empty()) << "one node";
}

TEST_F(CpuFolderTest, CgroupLimitIsTheLeastOfTheGroupAndItsParents) {
  Write(root_ / "self", "0::/a/b\n");
  EXPECT_EQ(CgroupCpuLimit(root_ / "self", root_), 0);
  Write(root_ / "a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(CgroupCpuLimit(root_ / "self", root_), 0);
  Write(root_ / "a/cpu.max", "150000 100000\n");
  EXPECT_EQ(CgroupCpuLimit(root_ / "self", root_), 1.5);
  Write(root_ / "cpu.max", "50000 100000\n");
  EXPECT_EQ(CgroupCpuLimit(root_ / "self", root_), 0.5);
  Write(root_ / "self", "4:memory:/x\n");
  EXPECT_EQ(CgroupCpuLimit(root_ / "self", root_), 0);
}

TEST_F(CpuFolderTest, CgroupLimitOfVersionOneIsReadToo) {
  Write(root_ / "self", "5:memory:/x\n4:cpu,cpuacct:/a/b\n3:cpuset:/\n");
  EXPECT_EQ(CgroupCpuLimit(root_ / "self", root_), 0);
  Write(root_ / "cpu/a/b/cpu.cfs_quota_us", "-1\n");
  Write(root_ / "cpu/a/b/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupCpuLimit(root_ / "self", root_), 0);
  Write(root_ / "cpu/a/cpu.cfs_quota_us", "150000\n");
  Write(root_ / "cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupCpuLimit(root_ / "self", root_), 1.5);
}

TEST(Cpu, PinningNarrowsTheAllowedCpusOfThisThreadOnly) {
  const std::vector<int> before = AllowedCpus();
  std::vector<int> inside;
  Status pinned;
  std::thread([&] {
    pinned = PinThisThread({before.back()});
    inside = AllowedCpus();
  }).join();
  EXPECT_TRUE(pinned.ok()) << pinned.ToString();
  EXPECT_EQ(inside, std::vector<int>{before.back()});
  EXPECT_EQ(AllowedCpus(), before);
  EXPECT_GE(UsableCores(), 1);
  EXPECT_LE(UsableCores(), static_cast<int>(before.size()));
}

TEST(Cpu, PinningToNothingIsRefusedByName) {
  const Status status = PinThisThread({});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("CPUs []"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace hone
