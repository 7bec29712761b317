#include "tests/client/run_hone.h"

#include <cstdlib>

#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/core/sanitizer.h"
#include "base/subprocess.h"
#include "tests/test_paths.h"

namespace hone::client::testing {

ProgramRun RunProcess(const std::vector<std::string>& words, const std::string& home,
                      const Variables& variables) {
  SubprocessOptions options;
  options.argv = words;
  options.environment = {"PATH=/usr/bin:/bin", "HOME=" + home};
  options.environment->insert(options.environment->end(), variables.begin(), variables.end());
  options.standard_input = ChildStream::kNull;
  RunOptions run;
  run.timeout_ns = int64_t{kSanitized ? 240 : 180} * 1'000'000'000;
  const auto result = RunSubprocess(options, run, SystemMonotonicClock());
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  EXPECT_FALSE(result->timed_out) << words.front();
  EXPECT_TRUE(result->exit_state.code.has_value()) << result->exit_state.ToString();
  return {result->exit_state.code.value_or(-1), result->standard_output, result->standard_error};
}

std::string HoneProgram() { return hone::testing::BuildDir() + "/bin/hone"; }

ProgramRun RunHone(std::vector<std::string> words, const std::string& home,
                   const Variables& variables) {
  words.insert(words.begin(), HoneProgram());
  return RunProcess(words, home, variables);
}

TemporaryFolder::TemporaryFolder() {
  std::string path = (std::filesystem::temp_directory_path() / "hone-client-XXXXXX").string();
  EXPECT_NE(::mkdtemp(path.data()), nullptr) << path;
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace hone::client::testing
