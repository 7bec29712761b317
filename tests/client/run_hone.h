#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hone::client::testing {

struct ProgramRun {
  int exit_code = -1;
  std::string out, err;
};

/// Runs a program to its end with a deadline. The environment has PATH and `home` as HOME, nothing
/// else. A start that fails or a deadline that passes fails the test.
ProgramRun RunProcess(const std::vector<std::string>& words, const std::string& home);

/// The path of the program `hone` of the build tree.
std::string HoneProgram();

/// Runs it in an empty home folder.
ProgramRun RunHone(std::vector<std::string> words, const std::string& home = "/dev/null");

/// A folder of this test, made empty; removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string Path(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace hone::client::testing
