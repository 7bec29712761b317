#include "codegen/link_folder.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/fake_clock.h"
#include "codegen/codegen.h"
#include "tests/codegen/kernel.h"

// Where the linker writes: what is left behind, and what a full disk does.
namespace hone::codegen {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class LinkFolderTest : public ::testing::Test {
 protected:
  LinkFolderTest() {
    std::string path = fs::temp_directory_path() / "hone-link-test-XXXXXX";
    EXPECT_NE(::mkdtemp(path.data()), nullptr) << path;
    root_ = path;
    fs::create_directories(root_ / "roomy");
  }
  ~LinkFolderTest() override {
    for (const fs::path& disk : mounted_) ::umount2(disk.c_str(), MNT_DETACH);
    fs::remove_all(root_);
  }

  /// A folder that was last changed so many seconds after 1970.
  fs::path FolderOf(const std::string& name, int64_t unix_seconds) {
    const fs::path folder = root_ / name;
    fs::create_directories(folder);
    std::ofstream(folder / "kernel.so.tmp1234567") << "half";
    const timespec time = {.tv_sec = unix_seconds, .tv_nsec = 0};
    const timespec times[2] = {time, time};
    EXPECT_EQ(::utimensat(AT_FDCWD, folder.c_str(), times, 0), 0);
    return folder;
  }
  /// A disk without a free byte; empty where none can be mounted.
  std::string FullDisk(const std::string& name) {
    const fs::path disk = root_ / name;
    fs::create_directories(disk);
    if (::mount("hone", disk.c_str(), "tmpfs", 0, "size=64k") != 0) return "";
    mounted_.push_back(disk);
    std::ofstream(disk / "ballast") << std::string(64 << 10, 'x') << std::flush;
    return disk;
  }

  fs::path root_;
  std::vector<fs::path> mounted_;
};

TEST_F(LinkFolderTest, WhatWasLeftOverAnHourAgoGoesAndNothingElse) {
  constexpr int64_t kNow = 100'000;
  const fs::path stale = FolderOf("hone-link-abcdef", kNow - 3700);
  const fs::path fresh = FolderOf("hone-link-ghijkl", kNow - 3500);
  const fs::path other = FolderOf("else-link-abcdef", kNow - 3700);
  const fs::path target = FolderOf("target", kNow - 3700);
  fs::create_directory_symlink(target, root_ / "hone-link-symbol");
  std::ofstream(root_ / "hone-link-a-file") << "x";
  const fs::path foreign = FolderOf("hone-link-foreign", kNow - 3700);
  const bool given_away = ::chown(foreign.c_str(), 65534, 65534) == 0;
  const FakeClock clock(kNow * 1'000'000'000);
  RemoveStaleLinkFolders({root_ / "not-there", root_}, clock);
  EXPECT_FALSE(fs::exists(stale));
  for (const fs::path& kept : {fresh, other, target}) {
    EXPECT_TRUE(fs::exists(kept / "kernel.so.tmp1234567")) << kept;
  }
  EXPECT_TRUE(fs::exists(root_ / "hone-link-symbol"));
  EXPECT_TRUE(fs::exists(root_ / "hone-link-a-file"));
  EXPECT_EQ(fs::exists(foreign), given_away);
}

TEST_F(LinkFolderTest, LeavesNothingBehind) {
  {
    const LinkFolder folder(root_ / "roomy");
    ASSERT_TRUE(folder.status().ok());
    std::ofstream(folder.File()) << "x";
    std::ofstream(folder.File() + ".tmp") << "x";
  }
  EXPECT_TRUE(fs::is_empty(root_ / "roomy"));
  EXPECT_FALSE(LinkFolder(root_ / "not-there").status().ok());
}

TEST_F(LinkFolderTest, AFullDiskIsPassedOverAndIsNoFaultOfTheObjects) {
  const std::string full = FullDisk("full"), also_full = FullDisk("also-full");
  if (full.empty()) GTEST_SKIP() << "no small disk can be mounted here: " << std::strerror(errno);
  NestBuilder b;
  b.AddPhase("one", ir::Store(b.Output("y", ir::DType::kF32, 1), ir::Int(0),
                              ir::Const(ir::DType::kF32, 1)));
  const auto object = CompileToObject({&b.nest}, MakeTarget("avx2"));
  ASSERT_TRUE(object.ok());
  const auto linked = LinkShared({*object}, {full, root_ / "roomy"});
  ASSERT_TRUE(linked.ok()) << linked.status();
  EXPECT_EQ(*linked, *LinkShared({*object}));

  const auto none = LinkShared({*object}, {full, also_full});
  EXPECT_EQ(none.status().code(), absl::StatusCode::kResourceExhausted) << none.status();
  EXPECT_THAT(none.status().ToString(), HasSubstr("'" + full + "' (0 KiB free), '" + also_full));
  // But what is wrong with the objects stays so.
  const auto clash = LinkShared({*object, *object}, {full, root_ / "roomy"});
  EXPECT_EQ(clash.status().code(), absl::StatusCode::kInvalidArgument) << clash.status();
}

}  // namespace
}  // namespace hone::codegen
