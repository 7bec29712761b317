#include "measure/cpu/cpu_checks.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/random_id.h"
#include "base/file.h"

namespace hone::measure {
namespace {

using ::testing::HasSubstr;

class CpuChecksTest : public ::testing::Test {
 protected:
  CpuChecksTest() : folder_(::testing::TempDir() + "/checks-" + RandomId().ToHex()) {}
  ~CpuChecksTest() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& path) const { return folder_ + "/" + path; }
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(Path(path)).parent_path());
    ASSERT_TRUE(WriteFileAtomically(Path(path), text).ok());
  }
  SystemPaths Paths() const { return {.proc = Path("proc"), .sys = Path("sys")}; }
  const std::string folder_;
};

TEST_F(CpuChecksTest, WantsThePerformanceGovernorOnEveryCpu) {
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

TEST_F(CpuChecksTest, SeesForeignLoad) {
  const std::string path = Path("proc/stat");
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
  EXPECT_EQ(CheckForeignLoad(Paths(), StatClock(Path("x"), "")).health, Health::kWarning);
}

}  // namespace
}  // namespace hone::measure
