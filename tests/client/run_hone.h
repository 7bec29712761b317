#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hone::client::testing {

struct ProgramRun {
  int exit_code = -1;
  std::string out, err;
};

/// "NAME=value".
using Variables = std::vector<std::string>;

/// Runs a program to its end with a deadline. The environment has PATH, `home` as HOME and
/// `variables`, nothing else. A start that fails or a deadline that passes fails the test.
ProgramRun RunProcess(const std::vector<std::string>& words, const std::string& home,
                      const Variables& variables = {});

/// The path of the program `hone` of the build tree.
std::string HoneProgram();

/// Runs it in an empty home folder.
ProgramRun RunHone(std::vector<std::string> words, const std::string& home = "/dev/null",
                   const Variables& variables = {});

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
