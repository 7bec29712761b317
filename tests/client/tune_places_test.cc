// Where hone tune finds and keeps its things: options, variables of the environment, folders.

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/cpu.h"
#include "base/file.h"
#include "tests/client/small_tuning.h"
#include "tests/test_paths.h"

namespace hone::client {
namespace {

using nlohmann::json;
using ::testing::AnyOf;
using ::testing::MatchesRegex;
using testing::Parse;
using testing::ProgramRun;
using testing::RunHone;
using testing::Variables;

class TunePlacesTest : public testing::SmallTuning {
 protected:
  json DryRun(const Variables& variables, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"tune", model_, "--dry-run", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return Parse(RunHone(words, home_, variables));
  }
  const std::string home_ = folder_.Path("home");
};

TEST_F(TunePlacesTest, TheLogIsThatOfTheOptionElseOfHoneDbElseInTheDataFolder) {
  const std::string data = "XDG_DATA_HOME=" + folder_.Path("data");
  const std::string db = "HONE_DB=" + folder_.Path("hone.db");
  EXPECT_EQ(DryRun({})["log"], home_ + "/.local/share/hone/tune.db");
  EXPECT_EQ(DryRun({data})["log"], folder_.Path("data/hone/tune.db"));
  EXPECT_EQ(DryRun({"XDG_DATA_HOME=data"})["log"], home_ + "/.local/share/hone/tune.db")
      << "the specification tells to ignore relative paths";
  EXPECT_EQ(DryRun({data, db})["log"], folder_.Path("hone.db"));
  EXPECT_EQ(DryRun({data, db}, {"--db", log_})["log"], log_);
  EXPECT_FALSE(std::filesystem::exists(home_)) << "a dry run makes nothing";
}

TEST_F(TunePlacesTest, AModelAloneIsTunedForTenMinutesOnAllCores) {
  const json object = DryRun({});
  EXPECT_EQ(object["seconds"], 600);
  EXPECT_EQ(object["trials"], 0);
  EXPECT_EQ(object["seed"], 0);
  EXPECT_THAT(object["target"].get<std::string>(),
              MatchesRegex("cpu:(avx2|avx512),threads=" + std::to_string(UsableCores())));
  const std::string target = DryRun({}, {"--threads", "1"})["target"];
  EXPECT_TRUE(target.ends_with(",threads=1")) << target;
}

TEST_F(TunePlacesTest, OptionsComeFromTheConfigFolderToo) {
  const auto write = [&](const std::string& folder, const std::string& text) {
    std::filesystem::create_directories(folder);
    ASSERT_TRUE(WriteFileAtomically(folder + "/config.toml", text).ok());
  };
  write(home_ + "/.config/hone", "seed = 3\n");
  write(folder_.Path("config/hone"), "seed = 4\n[tune]\nseconds = 33\n");
  EXPECT_EQ(DryRun({})["seed"], 3);
  const Variables config = {"XDG_CONFIG_HOME=" + folder_.Path("config")};
  EXPECT_EQ(DryRun(config)["seed"], 4);
  EXPECT_EQ(DryRun(config)["seconds"], 33);
  EXPECT_EQ(DryRun(config, {"--seed", "5", "--minutes", "1"})["seed"], 5);
  EXPECT_EQ(DryRun(config, {"--minutes", "1"})["seconds"], 60);
  EXPECT_EQ(DryRun(config, {"--seconds", "1h30m"})["seconds"], 5400);
}

TEST_F(TunePlacesTest, TheDefaultLogAndCacheAreMadeWithTheirFolders) {
  const Variables variables = {"XDG_DATA_HOME=" + folder_.Path("data"),
                               "XDG_CACHE_HOME=" + folder_.Path("cache")};
  const ProgramRun run =
      RunHone({"tune", model_, "--trials", "3", "--threads", "1", "--json"}, home_, variables);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(Parse(run)["log"], folder_.Path("data/hone/tune.db"));
  EXPECT_TRUE(std::filesystem::is_regular_file(folder_.Path("data/hone/tune.db")));
  EXPECT_FALSE(std::filesystem::is_empty(folder_.Path("cache/hone")));
  EXPECT_FALSE(std::filesystem::exists(home_)) << "nothing goes where no variable points";
  // It is found there again.
  const ProgramRun report =
      RunHone({"report", "--json", "-o", folder_.Path("r.html")}, home_, variables);
  EXPECT_EQ(Parse(report)["session"], Parse(run)["session"]) << report.err;
}

TEST_F(TunePlacesTest, TheReadmesFirstTwoCommandsWorkAsTheyStand) {
  const std::string readme = *ReadFile(hone::testing::SourceDir() + "/README.md");
  const auto line = [&](const std::string& command) {
    const size_t begin = readme.find("\n$ hone " + command + " model.onnx");
    EXPECT_NE(begin, std::string::npos) << command;
    const size_t end = readme.find_first_of("#\n", begin + 1);
    return readme.substr(begin + 3, end - begin - 3);
  };
  std::filesystem::copy_file(model_, folder_.Path("model.onnx"));
  for (const Variables& variables : {Variables{}, Variables{"HONE_DB=" + folder_.Path("h.db")}}) {
    const auto run = [&](const std::string& command) {
      return testing::RunProcess({"/bin/sh", "-c",
                                  "cd " + folder_.path() + " && PATH=" + hone::testing::BuildDir() +
                                      "/bin:$PATH && " + command},
                                 home_, variables);
    };
    const ProgramRun tune = run(line("tune") + " --trials 9 --seconds 9");
    EXPECT_EQ(tune.exit_code, 0) << tune.err;
    const ProgramRun compile = run(line("compile"));
    EXPECT_EQ(compile.exit_code, 0) << compile.err;
    // The log was read: its records serve, or its verdict keeps the defaults of so small a model.
    EXPECT_THAT(compile.err,
                AnyOf(MatchesRegex(". of 3 kernels from '.*'.*; --no-log .*\n"),
                      MatchesRegex("the model keeps its default schedules by a verdict .*\n")));
  }
}

}  // namespace
}  // namespace hone::client
