#include "measure/builder_folders.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "measure/builder_client.h"
#include "tests/test_paths.h"

namespace hone::measure {
namespace {

/// A folder as a builder's, with a file in it, that was last used so long ago.
class Left {
 public:
  explicit Left(int64_t seconds_ago, const std::string& like = "/dev/shm/hone-builder-XXXXXX") {
    path_ = like;
    EXPECT_NE(::mkdtemp(path_.data()), nullptr) << path_;
    std::ofstream(path_ + "/kernel.o") << "half";
    if (seconds_ago > 0) Age(seconds_ago);
  }
  ~Left() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Left(const Left&) = delete;
  Left& operator=(const Left&) = delete;

  /// From now on any builder of this user, also of another test, may sweep it away.
  void Age(int64_t seconds) const {
    struct stat info {};
    EXPECT_EQ(::stat(path_.c_str(), &info), 0);
    const struct timespec then { .tv_sec = info.st_mtim.tv_sec - seconds, .tv_nsec = 0 };
    const struct timespec times[] = {then, then};
    EXPECT_EQ(::utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  }

  const std::string& path() const { return path_; }
  bool exists() const { return std::filesystem::exists(path_); }

 private:
  std::string path_;
};

TEST(BuilderFolders, GoWithTheirOwner) {
  std::vector<std::string> paths;
  {
    const BuilderFolders folders;
    paths = folders.paths();
    ASSERT_FALSE(paths.empty());
    for (const std::string& path : paths) std::ofstream(path + "/kernel.o") << "half";
  }
  for (const std::string& path : paths) EXPECT_FALSE(std::filesystem::exists(path)) << path;
}

TEST(BuilderFolders, WhatAKilledProcessLeftGoesWithTheNextBuilder) {
  std::vector<std::unique_ptr<Left>> left;
  const BuilderFolders own;
  for (const std::string& path : own.paths()) {
    const std::string like = std::filesystem::path(path).replace_filename("hone-builder-XXXXXX");
    left.push_back(std::make_unique<Left>(120, like));
  }
  EXPECT_EQ(left.size(), 2u) << "in memory and on disk";
  BuilderOptions options;
  options.program = hone::testing::BuildDir() + "/tests/fake_builder";
  const SystemMonotonicClock clock;
  BuilderClient client(options, clock);
  const BuildJob job{.target = "cpu:avx2,threads=1", .kernels = {{"w", "serve", {}, "k"}}};
  EXPECT_TRUE(client.Build(job).ok());
  for (const auto& folder : left) EXPECT_FALSE(folder->exists()) << folder->path();
}

TEST(BuilderFolders, WhatIsHeldOrYoungOrNoneOfThemStays) {
  const BuilderFolders held;
  const Left locked(0), young(5), longer(120, "/dev/shm/hone-builder-mine-XXXXXX");
  const UniqueFd lock(::open(locked.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  locked.Age(120);
  // A link of that name to somebody's folder, and a file.
  const Left target(120, ::testing::TempDir() + "/left-XXXXXX");
  const std::string link = locked.path().substr(0, locked.path().size() - 3) + "000";
  std::filesystem::create_symlink(target.path(), link);
  const std::string file = locked.path().substr(0, locked.path().size() - 3) + "001";
  std::ofstream(file) << "text";
  SweepLeftFolders(BuilderFolders());
  EXPECT_TRUE(locked.exists());
  EXPECT_TRUE(young.exists());
  EXPECT_TRUE(longer.exists());
  EXPECT_TRUE(std::filesystem::exists(target.path() + "/kernel.o"));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(std::filesystem::exists(file));
  for (const std::string& path : held.paths()) {
    EXPECT_TRUE(std::filesystem::exists(path)) << path;
    const UniqueFd other(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    EXPECT_NE(::flock(other.get(), LOCK_EX | LOCK_NB), 0) << path;
  }
  std::filesystem::remove(link);
  std::filesystem::remove(file);
}

TEST(BuilderFolders, OfAnotherUserStay) {
  const Left others(0);
  if (::chown(others.path().c_str(), 65534, 65534) != 0) {
    GTEST_SKIP() << "nothing can be given to another user here (it takes root)";
  }
  others.Age(120);
  SweepLeftFolders(BuilderFolders());
  EXPECT_TRUE(others.exists());
}

}  // namespace
}  // namespace hone::measure
