#include "measure/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/core/random.h"
#include "base/file.h"
#include "measure/oracle_memo.h"

namespace hone::measure {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DiskCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "disk_cache.XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override {
    fs::permissions(root_, fs::perms::owner_all);
    fs::remove_all(root_);
  }

  std::string Folder() const { return (root_ / "cache" / "hone").string(); }
  DiskCacheOptions Options() const { return {.folder = Folder(), .identity = "a"}; }
  /// The only entry of a kind.
  fs::path OnlyEntry(const std::string& kind) const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(fs::path(Folder()) / kind)) {
      found.push_back(entry.path());
    }
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? fs::path() : found[0];
  }
  int64_t NumEntries() const {
    const CacheUsage usage = DiskCache({.folder = Folder(), .make_folder = false}).Usage();
    return usage.files[0] + usage.files[1];
  }

  fs::path root_;
};

TEST_F(DiskCacheTest, GivesBackWhatWasPutUnderKindKeyAndIdentity) {
  std::string bytes(1000, '\0');
  bytes += "end";
  {
    DiskCache cache(Options());
    EXPECT_EQ(cache.why_unused(), "");
    cache.Put(CacheKind::kArtifact, "key", bytes);
    cache.Put(CacheKind::kArtifact, "empty", "");
    EXPECT_EQ(cache.Get(CacheKind::kArtifact, "key"), bytes);
  }
  DiskCache cache(Options());
  EXPECT_EQ(cache.Get(CacheKind::kArtifact, "key"), bytes);
  EXPECT_EQ(cache.Get(CacheKind::kArtifact, "empty"), "");
  EXPECT_EQ(cache.hits(), 2);
  EXPECT_EQ(cache.Get(CacheKind::kArtifact, "another"), std::nullopt);
  EXPECT_EQ(cache.Get(CacheKind::kOracle, "key"), std::nullopt);
  DiskCacheOptions other = Options();
  other.identity = "b";
  EXPECT_EQ(DiskCache(other).Get(CacheKind::kArtifact, "key"), std::nullopt);
  EXPECT_EQ(fs::status(Folder()).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(Folder() + "/artifacts").permissions(), fs::perms::owner_all);
}

// Whatever happens to a file, a reader gets the right bytes or none, and the file goes.
TEST_F(DiskCacheTest, DamagedEntriesAreIgnoredAndRemoved) {
  const std::string payload = "some code";
  Random random(7);
  DiskCache cache(Options());
  for (int turn = 0; turn < 200; ++turn) {
    SCOPED_TRACE(turn);
    cache.Put(CacheKind::kArtifact, "key", payload);
    const fs::path path = OnlyEntry("artifacts");
    std::string bytes = *ReadFile(path.string());
    switch (turn % 3) {
      case 0: bytes[random.Below(bytes.size())] ^= static_cast<char>(1 << random.Below(8)); break;
      case 1: bytes.resize(random.Below(bytes.size())); break;
      default: bytes += 'x';
    }
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    EXPECT_EQ(cache.Get(CacheKind::kArtifact, "key"), std::nullopt);
    EXPECT_FALSE(fs::exists(path));
  }
}

// An entry is code: one that somebody else may have written, or that stands elsewhere, is not run.
TEST_F(DiskCacheTest, HeedsNothingThatOthersMayWrite) {
  DiskCache cache(Options());
  const auto put = [&] {
    cache.Put(CacheKind::kArtifact, "key", "code");
    return OnlyEntry("artifacts");
  };
  ASSERT_EQ(::chmod(put().c_str(), 0620), 0);
  EXPECT_EQ(cache.Get(CacheKind::kArtifact, "key"), std::nullopt);

  fs::path path = put();
  fs::rename(path, root_ / "elsewhere");
  fs::create_symlink(root_ / "elsewhere", path);
  EXPECT_EQ(cache.Get(CacheKind::kArtifact, "key"), std::nullopt);
  fs::remove(path);

  path = put();
  fs::rename(path, path.parent_path() / std::string(64, 'a'));
  EXPECT_EQ(cache.Get(CacheKind::kArtifact, "key"), std::nullopt);
  fs::remove(path.parent_path() / std::string(64, 'a'));

  path = put();
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(cache.Get(CacheKind::kArtifact, "key"), std::nullopt) << "and does not wait for it";

  if (::geteuid() == 0) {
    path = put();
    ASSERT_EQ(::chown(path.c_str(), 1234, 1234), 0);
    EXPECT_EQ(cache.Get(CacheKind::kArtifact, "key"), std::nullopt);
  }
  ASSERT_EQ(::chmod((Folder() + "/artifacts").c_str(), 0777), 0);
  const DiskCache again(Options());
  EXPECT_EQ(fs::status(Folder() + "/artifacts").permissions(), fs::perms::owner_all);
}

TEST_F(DiskCacheTest, AFolderThatCannotBeUsedIsAnEmptyCache) {
  const auto why = [](DiskCacheOptions options) {
    DiskCache cache(std::move(options));
    cache.Put(CacheKind::kArtifact, "key", "code");
    EXPECT_EQ(cache.Get(CacheKind::kArtifact, "key"), std::nullopt);
    EXPECT_EQ(cache.Usage().files[0], 0);
    return cache.why_unused();
  };
  EXPECT_THAT(why({.folder = ""}), HasSubstr("HOME"));
  EXPECT_THAT(why({.folder = "/dev/null/hone"}), HasSubstr("/dev/null"));
  EXPECT_THAT(why({.folder = Folder(), .limit_bytes = 0}), HasSubstr("0 MB"));
  EXPECT_EQ(why({.folder = Folder(), .make_folder = false}), "");
  EXPECT_FALSE(fs::exists(Folder())) << "none of these makes it";
  fs::create_directories(Folder());
  fs::create_directory_symlink(root_, Folder() + "/artifacts");
  EXPECT_THAT(why(Options()), HasSubstr("artifacts"));
  fs::remove(Folder() + "/artifacts");
  if (::geteuid() != 0) {
    fs::permissions(Folder(), fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_THAT(why(Options()), HasSubstr("artifacts"));
    fs::permissions(Folder(), fs::perms::owner_all);
    return;
  }
  // As root beside a user's home: what it made there the user could not use.
  ASSERT_EQ(::chown(Folder().c_str(), 1234, 1234), 0);
  EXPECT_THAT(why(Options()), HasSubstr("belongs to user 1234"));
}

TEST_F(DiskCacheTest, KeepsTheLimitAndWhatWasUsedLast) {
  constexpr int64_t kEntryBytes = 10'000, kOnDiskBytes = 12'288;
  DiskCacheOptions options = Options();
  options.limit_bytes = 40 * kOnDiskBytes;
  const auto key = [](int i) { return fmt::format("entry {}", i); };
  {
    DiskCache cache(options);
    cache.Put(CacheKind::kOracle, key(0), std::string(kEntryBytes, 'o'));
    for (int i = 1; i < 200; ++i) {
      cache.Put(CacheKind::kArtifact, key(i), std::string(kEntryBytes, 'a'));
      EXPECT_TRUE(cache.Get(CacheKind::kOracle, key(0))) << "used again and again: " << i;
      const CacheUsage usage = cache.Usage();
      EXPECT_LE(usage.bytes[0] + usage.bytes[1],
                options.limit_bytes + options.limit_bytes / 16 + kOnDiskBytes);
      // The file system's clock ticks in milliseconds.
      if (i % 10 == 0) SystemMonotonicClock().SleepNs(5'000'000);
    }
    EXPECT_TRUE(cache.Get(CacheKind::kArtifact, key(199)));
    EXPECT_FALSE(cache.Get(CacheKind::kArtifact, key(1)));
    cache.Put(CacheKind::kArtifact, "huge", std::string(6 * kOnDiskBytes, 'h'));
    EXPECT_FALSE(cache.Get(CacheKind::kArtifact, "huge")) << "an eighth of the limit at most";
  }
  const DiskCache cache(options);
  EXPECT_LE(cache.Usage().bytes[0] + cache.Usage().bytes[1], options.limit_bytes);
  EXPECT_GT(cache.Usage().files[0], 20);
}

TEST_F(DiskCacheTest, WhatAKilledProgramLeftGoesAfterAnHour) {
  DiskCache cache(Options());
  cache.Put(CacheKind::kArtifact, "key", "code");
  const std::string folder = Folder() + "/artifacts/";
  std::ofstream(folder + "tmp.old") << "half";
  std::ofstream(folder + "tmp.new") << "half";
  std::ofstream(folder + "notes.txt") << "somebody's";
  fs::last_write_time(folder + "tmp.old", fs::file_time_type::clock::now() - std::chrono::hours(2));
  cache.Trim();
  EXPECT_FALSE(fs::exists(folder + "tmp.old"));
  EXPECT_TRUE(fs::exists(folder + "tmp.new"));
  EXPECT_TRUE(cache.Get(CacheKind::kArtifact, "key"));
  cache.Clear();
  EXPECT_FALSE(fs::exists(folder + "tmp.new"));
  EXPECT_TRUE(fs::exists(folder + "notes.txt")) << "not the cache's";
  EXPECT_EQ(NumEntries(), 0);
}

TEST_F(DiskCacheTest, ADiskThatFillsUpIsNoError) {
  DiskCacheOptions options = Options();
  options.least_free_bytes = int64_t{1} << 62;
  DiskCache cache(options);
  cache.Put(CacheKind::kArtifact, "key", "code");
  EXPECT_EQ(cache.Get(CacheKind::kArtifact, "key"), std::nullopt);
  EXPECT_EQ(NumEntries(), 0);
}

// Programs that write, read, trim and clear the same small folder: each read gives the right bytes
// or none.
TEST_F(DiskCacheTest, ProgramsMayShareAFolder) {
  constexpr int kPrograms = 4, kKeys = 30, kTurns = 400;
  const auto payload = [](uint64_t key) {
    return std::string(3000 + 100 * key, static_cast<char>('a' + key % 26));
  };
  const auto program = [&](uint64_t seed) {
    DiskCacheOptions options = Options();
    options.limit_bytes = 100'000;
    DiskCache cache(options);
    Random random(seed);
    int wrong = 0;
    for (int turn = 0; turn < kTurns; ++turn) {
      const uint64_t key = random.Below(kKeys);
      const std::string name = fmt::format("key {}", key);
      const auto found = cache.Get(CacheKind::kArtifact, name);
      if (found && *found != payload(key)) ++wrong;
      if (!found) cache.Put(CacheKind::kArtifact, name, payload(key));
      if (turn % 150 == 149) DiskCache({.folder = Folder(), .make_folder = false}).Clear();
    }
    return wrong;
  };
  std::vector<pid_t> children;
  for (int i = 0; i < kPrograms; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(program(static_cast<uint64_t>(i)) == 0 ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int state = 0;
    ASSERT_EQ(::waitpid(child, &state, 0), child);
    EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0) << state;
  }
}

TEST_F(DiskCacheTest, OracleValuesAreComputedOnce) {
  const auto cache = std::make_shared<DiskCache>(Options());
  std::vector<int64_t> computed;
  const auto evaluate =
      [&](std::span<const int64_t> points) -> absl::StatusOr<std::vector<ir::PointValue>> {
    std::vector<ir::PointValue> values;
    for (const int64_t point : points) {
      computed.push_back(point);
      values.push_back({.value = 0.1 * static_cast<double>(point), .bound = 1e-9});
    }
    return values;
  };
  const std::vector<int64_t> points = {5, 7, 9, 11};
  {
    OracleMemo memo(cache, "conv", points, evaluate);
    EXPECT_EQ((*memo.Values(0, 2))[1].value, 0.1 * 7);
  }
  EXPECT_THAT(computed, ElementsAre(5, 7));
  {
    OracleMemo memo(cache, "conv", points, evaluate);
    EXPECT_EQ(memo.num_known(), 2u);
    EXPECT_EQ((*memo.Values(0, 2))[0].bound, 1e-9);
    EXPECT_EQ((*memo.Values(2, 2))[1].value, 0.1 * 11);
  }
  EXPECT_THAT(computed, ElementsAre(5, 7, 9, 11));
  EXPECT_EQ(OracleMemo(cache, "conv", points, evaluate).num_known(), 4u);
  EXPECT_EQ(OracleMemo(cache, "product", points, evaluate).num_known(), 0u);
  EXPECT_EQ(OracleMemo(cache, "conv", {5, 7}, evaluate).num_known(), 0u) << "other points";
  EXPECT_EQ(OracleMemo(nullptr, "conv", points, evaluate).num_known(), 0u);
}

}  // namespace
}  // namespace hone::measure
