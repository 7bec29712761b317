#include "client/doctor.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/fake_clock.h"
#include "base/file.h"
#include "db/log_file.h"
#include "tests/client/run_hone.h"

namespace hone::client {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;

class DoctorTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_.Path(path)).parent_path());
    ASSERT_TRUE(WriteFileAtomically(folder_.Path(path), text).ok());
  }
  DoctorPaths Paths() const {
    return {.proc = folder_.Path("proc"), .sys = folder_.Path("sys"), .written_folders = {}};
  }
  const TemporaryFolder folder_;
};

TEST_F(DoctorTest, WantsThePerformanceGovernorOnEveryCpu) {
  EXPECT_EQ(CheckGovernor(Paths()).health, Health::kGood);  // none known
  Write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  EXPECT_EQ(CheckGovernor(Paths()).health, Health::kGood);
  Write("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
  const Finding mixed = CheckGovernor(Paths());
  EXPECT_EQ(mixed.health, Health::kWarning);
  EXPECT_EQ(mixed.found, "performance on 1 CPUs, powersave on 1 CPUs");
  EXPECT_THAT(mixed.remedy, HasSubstr("cpupower"));
}

/// Writes the second reading while the check sleeps.
class StatClock final : public MonotonicClock {
 public:
  StatClock(std::string path, std::string later)
      : path_(std::move(path)), later_(std::move(later)) {}
  int64_t NowNs() const override { return 0; }
  void SleepNs(int64_t) const override { EXPECT_TRUE(WriteFileAtomically(path_, later_).ok()); }

 private:
  std::string path_, later_;
};

TEST_F(DoctorTest, SeesForeignLoad) {
  const std::string path = folder_.Path("proc/stat");
  Write("proc/stat", "cpu  100 0 100 1000 0 0 0 0 0 0\ncpu0 1\n");
  const Finding idle =
      CheckForeignLoad(Paths(), StatClock(path, "cpu  101 0 100 1099 0 0 0 0 0 0\n"));
  EXPECT_EQ(idle.health, Health::kGood) << idle.found;
  Write("proc/stat", "cpu  100 0 100 1000 0 0 0 0 0 0\n");
  const Finding busy =
      CheckForeignLoad(Paths(), StatClock(path, "cpu  140 0 110 1040 10 0 0 0 0 0\n"));
  EXPECT_EQ(busy.health, Health::kWarning);
  EXPECT_EQ(busy.found, "50 % of all CPUs busy");
  std::filesystem::remove(path);
  EXPECT_EQ(CheckForeignLoad(Paths(), StatClock(folder_.Path("x"), "")).health, Health::kWarning);
}

TEST_F(DoctorTest, WantsFreeMemory) {
  Write("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable:    8000000 kB\n");
  EXPECT_EQ(CheckMemory(Paths()).health, Health::kGood);
  Write("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable:    500000 kB\n");
  EXPECT_EQ(CheckMemory(Paths()).health, Health::kWarning);
  EXPECT_THAT(CheckMemory(Paths()).found, HasSubstr("512 MB"));
}

TEST_F(DoctorTest, LooksAtTheDiskOfTheNearestFolder) {
  DoctorPaths paths = Paths();
  paths.written_folders = {folder_.Path("not/yet/there")};
  EXPECT_EQ(CheckDisk(paths).health, Health::kGood) << CheckDisk(paths).found;
  if (std::filesystem::exists("/proc/self")) {
    paths.written_folders = {"/proc/hone"};  // a file system without room
    EXPECT_EQ(CheckDisk(paths).health, Health::kFault);
    EXPECT_THAT(CheckDisk(paths).remedy, HasSubstr("XDG_DATA_HOME"));
  }
  paths.written_folders = {""};
  EXPECT_EQ(CheckDisk(paths).health, Health::kWarning);
}

TEST(DoctorMachineTest, EveryComplaintHasARemedy) {
  DoctorPaths paths;
  paths.written_folders = {std::filesystem::temp_directory_path().string()};
  for (const Finding& finding : CheckMachine(paths, SystemMonotonicClock())) {
    EXPECT_FALSE(finding.check.empty());
    EXPECT_FALSE(finding.found.empty()) << finding.check;
    EXPECT_EQ(finding.remedy.empty(), finding.health == Health::kGood) << finding.check;
  }
}

TEST_F(DoctorTest, LooksAtTheLog) {
  EXPECT_EQ(CheckLog("").health, Health::kGood);
  EXPECT_THAT(CheckLog(folder_.Path("no.db")).found, HasSubstr("none yet"));
  ASSERT_TRUE(db::OpenLog(folder_.Path("t.db"), {.mode = db::OpenMode::kWrite}).ok());
  const Finding good = CheckLog(folder_.Path("t.db"));
  EXPECT_EQ(good.health, Health::kGood);
  EXPECT_THAT(good.found, HasSubstr("0 records"));
  Write("bad.db", "this is no log");
  const Finding bad = CheckLog(folder_.Path("bad.db"));
  EXPECT_EQ(bad.health, Health::kFault);
  EXPECT_THAT(bad.found, HasSubstr("bad.db"));
  EXPECT_THAT(bad.remedy, HasSubstr("hone db verify"));
}

TEST_F(DoctorTest, HelperProgramsAnswer) {
  EXPECT_EQ(CheckPrograms(SystemMonotonicClock()).health, Health::kGood);
}

}  // namespace
}  // namespace hone::client
