#include "client/doctor.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

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
    return {.system = {.proc = folder_.Path("proc"), .sys = folder_.Path("sys")}};
  }
  const TemporaryFolder folder_;
};

TEST_F(DoctorTest, WantsFreeMemory) {
  Write("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable:    8000000 kB\n");
  EXPECT_EQ(CheckMemory(Paths().system).health, Health::kGood);
  Write("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable:    500000 kB\n");
  EXPECT_EQ(CheckMemory(Paths().system).health, Health::kWarning);
  EXPECT_THAT(CheckMemory(Paths().system).found, HasSubstr("512 MB"));
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
