#include "base/helper_program.h"

#include <sys/stat.h>

#include <filesystem>

#include "gtest/gtest.h"

#include "base/file.h"
#include "tests/test_paths.h"

namespace hone {
namespace {

TEST(FindHelperProgram, FindsProgramsOfTheBuildTreeByRelativePath) {
  const std::string folder = testing::BuildDir() + "/libexec/hone";
  const std::string path = folder + "/hone-test-helper";
  ASSERT_TRUE(MakeDirectories(folder).ok());
  ASSERT_TRUE(WriteFileAtomically(path, "#!/bin/sh\n").ok());
  EXPECT_EQ(FindHelperProgram("hone-test-helper").status().code(), absl::StatusCode::kNotFound)
      << "found a file that cannot be executed";
  ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  const absl::StatusOr<std::string> found = FindHelperProgram("hone-test-helper");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(std::filesystem::equivalent(*found, path));
  std::filesystem::remove(path);
}

TEST(FindHelperProgram, SaysWhereItLooked) {
  const absl::Status status = FindHelperProgram("hone-nothing").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(StatusMessage(status).find("/libexec/hone/hone-nothing'"), std::string::npos) << status;
}

}  // namespace
}  // namespace hone
