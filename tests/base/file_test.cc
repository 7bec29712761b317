#include "base/file.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "gtest/gtest.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  FileTest() : root_(fs::path(::testing::TempDir()) / "hone_file_test") {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~FileTest() override { fs::remove_all(root_); }

  size_t FilesInRoot() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(root_), {}));
  }

  fs::path root_;
};

TEST_F(FileTest, WritesAndReadsBackEveryByteAndReplaces) {
  std::string bytes;
  for (int i = 0; i < 300'000; ++i) bytes.push_back(static_cast<char>(i * 7));
  const std::string path = root_ / "a.bin";
  ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  EXPECT_EQ(ReadFile(path).value(), bytes);
  ASSERT_TRUE(WriteFileAtomically(path, "").ok());
  EXPECT_EQ(ReadFile(path).value(), "");
  EXPECT_EQ(FilesInRoot(), 1u);
}

TEST_F(FileTest, ReadsFilesWhoseSizeTheKernelDoesNotTell) {
  const absl::StatusOr<std::string> text = ReadFile("/proc/self/status");
  ASSERT_TRUE(text.ok());
  EXPECT_NE(text->find("Pid:"), std::string::npos);
}

TEST_F(FileTest, MissingFileAndFolderAreNamed) {
  const std::string path = root_ / "none.onnx";
  EXPECT_EQ(
      ReadFile(path).status(),
      absl::NotFoundError("cannot read '" + path + "': No such file or directory; check the path"));
  EXPECT_EQ(ReadFile(root_).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteFileAtomically(root_, "x").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteFileAtomically(root_ / "no" / "file", "x").code(), absl::StatusCode::kNotFound);
}

TEST_F(FileTest, FullDiskIsSaidAndTheOldFileStays) {
  const absl::Status full = WriteFileAtomically("/dev/full", "x");
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(StatusMessage(full).find("'/dev/full'"), std::string::npos);
  struct stat info {};
  ASSERT_EQ(::stat("/dev/full", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode)) << "the device was replaced by a file";
}

TEST_F(FileTest, FailureLeavesNothingBehind) {
  const std::string path = root_ / std::string(250, 'n');  // the name beside it would be too long
  EXPECT_FALSE(WriteFileAtomically(path, "x").ok());
  EXPECT_EQ(FilesInRoot(), 0u);
}

TEST_F(FileTest, MakeDirectoriesMakesParentsAndAcceptsExisting) {
  const std::string path = root_ / "a/b/c";
  EXPECT_TRUE(MakeDirectories(path).ok());
  EXPECT_TRUE(MakeDirectories(path).ok());
  EXPECT_TRUE(fs::is_directory(path));
  ASSERT_TRUE(WriteFileAtomically(root_ / "f", "x").ok());
  EXPECT_FALSE(MakeDirectories(root_ / "f" / "g").ok());
}

TEST_F(FileTest, AFileThatAUserNamedIsRefusedWithWhatToDo) {
  EXPECT_EQ(
      UnreadableFile(ENOENT, "/no/x.onnx"),
      absl::NotFoundError("cannot read '/no/x.onnx': No such file or directory; check the path"));
  EXPECT_EQ(StatusMessage(UnreadableFile(ENOENT, "x.onnx")),
            "cannot read 'x.onnx': No such file or directory; check the path, which begins at '" +
                std::filesystem::current_path().string() + "'");
  EXPECT_EQ(StatusMessage(UnreadableFile(EACCES, "/x")),
            "cannot read '/x': Permission denied; ask its owner for the right to read it");
}

}  // namespace
}  // namespace hone
