#include "base/free_space.h"

#include <sys/mount.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>

#include "gtest/gtest.h"

#include "base/file.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

TEST(FreeSpaceTest, AgreesWithTheStandardLibraryAndKnowsNothingOfWhatIsNotThere) {
  const fs::path folder = fs::temp_directory_path();
  const auto expected = static_cast<double>(fs::space(folder).available);
  EXPECT_NEAR(static_cast<double>(FreeBytes(folder)), expected, 0.1 * expected);
  EXPECT_EQ(FreeBytes("/nowhere/at/all"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(FreeBytes("/proc"), std::numeric_limits<int64_t>::max());  // has no size
}

TEST(FreeSpaceTest, ShrinksByWhatIsWritten) {
  std::string disk = fs::temp_directory_path() / "hone-free-space-XXXXXX";
  ASSERT_NE(::mkdtemp(disk.data()), nullptr) << disk;
  if (::mount("hone", disk.c_str(), "tmpfs", 0, "size=1m") != 0) {
    const std::string why = std::strerror(errno);
    fs::remove(disk);
    GTEST_SKIP() << "no small disk can be mounted here: " << why;
  }
  EXPECT_EQ(FreeBytes(disk), 1 << 20);
  EXPECT_TRUE(WriteFileAtomically(disk + "/file", std::string(3 << 18, 'x')).ok());
  EXPECT_EQ(FreeBytes(disk + "/file"), 1 << 18);
  EXPECT_EQ(::umount(disk.c_str()), 0);
  EXPECT_TRUE(fs::remove(disk));
}

}  // namespace
}  // namespace hone
