#include "tests/client/installation.h"

#include <filesystem>

#include "gtest/gtest.h"

#include "base/file.h"
#include "tests/test_paths.h"

namespace hone::client::testing {

Installation::Installation(const std::string& builder, const std::string& runner) {
  std::filesystem::create_directories(folder_.Path("bin"));
  std::filesystem::create_directories(folder_.Path("libexec/hone"));
  std::filesystem::copy_file(HoneProgram(), folder_.Path("bin/hone"));
  if (!builder.empty()) std::filesystem::create_symlink(builder, Helper("hone-builder"));
  if (!runner.empty()) std::filesystem::create_symlink(runner, Helper("hone-runner"));
}

void Installation::SetBuilderScript(const std::string& script) const {
  std::filesystem::remove(Helper("hone-builder"));
  EXPECT_TRUE(WriteFileAtomically(Helper("hone-builder"), "#!/bin/sh\n" + script + "\n").ok());
  std::filesystem::permissions(Helper("hone-builder"), std::filesystem::perms::owner_all);
}

ProgramRun Installation::Run(std::vector<std::string> words, const std::string& wrapper) const {
  words.insert(words.begin(), Program());
  if (!wrapper.empty()) words.insert(words.begin(), wrapper);
  return RunProcess(words, "/dev/null");
}

void Installation::OpenToAll() const {
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
}

std::string Installation::RealHelper(const std::string& name) {
  return hone::testing::BuildDir() + "/libexec/hone/" + name;
}

std::string Installation::WithoutSeccomp() {
  return hone::testing::BuildDir() + "/tests/without_seccomp";
}

}  // namespace hone::client::testing
