#include "client/program.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "base/file.h"
#include "base/versions.h"
#include "tests/client/run_hone.h"
#include "tests/test_paths.h"

namespace hone::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramRun;
using testing::RunHone;
using ::testing::StartsWith;
using testing::TemporaryFolder;

TEST(ProgramTest, HelpGoesToStandardOutput) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"-h"},
                                             {"zoo", "--help"},
                                             {"man", "-h"},
                                             {"-h", "zoo"},
                                             {"help"},
                                             {"help", "zoo"}}) {
    const ProgramRun run = RunHone(words);
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_THAT(run.out, HasSubstr("Usage: hone"));
    EXPECT_EQ(run.err, "");
  }
}

TEST(ProgramTest, AloneItSaysHowToBegin) {
  const ProgramRun run = RunHone({});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, StartsWith("Hone "));
  for (const char* first :
       {"hone tune resnet18.onnx ", "hone compile resnet18.onnx ", "hone help COMMAND"}) {
    EXPECT_THAT(run.err, HasSubstr(first));
  }
  EXPECT_LT(std::ranges::count(run.err, '\n'), 15);
}

TEST(ProgramTest, HelpIsAWordToo) {
  EXPECT_EQ(RunHone({"help"}).out, RunHone({"--help"}).out);
  EXPECT_EQ(RunHone({"help", "run"}).out, RunHone({"run", "--help"}).out);
  const ProgramRun unknown = RunHone({"help", "zo"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("there is no command \"zo\"; did you mean zoo?"));
}

TEST(ProgramTest, AfterTwoDashesNothingIsAnOption) {
  const ProgramRun run = RunHone({"inspect", "--", "-m.onnx"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.err, HasSubstr("cannot read '-m.onnx'"));
  EXPECT_THAT(RunHone({"inspect", "-m.onnx", "--"}).err, HasSubstr("there is no option -m.onnx"));
  EXPECT_THAT(RunHone({"inspect", "m.onnx", "--"}).err, HasSubstr("cannot read 'm.onnx'"));
  EXPECT_THAT(RunHone({"inspect", "--", "m.onnx", "-x"}).err, HasSubstr("-x"));
}

/// "PackageFormat" to "package format": what people read of a constant.
std::string NameOfVersion(const std::string& constant) {
  if (constant == "Schema") return "log schema";
  std::string name;
  for (const char c : constant) {
    const bool upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    if (upper && !name.empty()) name += ' ';
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return name;
}

TEST(ProgramTest, VersionIsACommandToo) {
  EXPECT_EQ(RunHone({"version"}).out, RunHone({"--version"}).out);
  EXPECT_EQ(RunHone({"version", "--json"}).out, RunHone({"--version", "--json"}).out);
}

TEST(ProgramTest, ZooTellsWhatThereIs) {
  const ProgramRun run = RunHone({"zoo", "ls"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, HasSubstr("NAME          WHAT IT IS\nresnet18      image classifier"));
  EXPECT_EQ(run.out, RunHone({"zoo", "list"}).out);
  const auto object = nlohmann::json::parse(RunHone({"zoo", "list", "--json"}).out);
  EXPECT_EQ(object["networks"].size(), 11U);
}

TEST(ProgramTest, VersionPrintsEveryNumber) {
  const ProgramRun text = RunHone({"--version"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, StartsWith(std::string("hone ") + kProgramVersion));
  EXPECT_THAT(text.out, HasSubstr("LLVM                22.1"));
  const auto object = nlohmann::json::parse(RunHone({"--version", "--json"}).out);
  EXPECT_FALSE(object["xgboost"].get<std::string>().empty());
  // From the file itself, so that none that is added there is forgotten here.
  const std::string header = *ReadFile(hone::testing::SourceDir() + "/base/versions.h");
  const std::regex constant("constexpr int k(\\w+)Version = (\\d+);");
  int numbers = 0;
  for (std::sregex_iterator it(header.begin(), header.end(), constant), end; it != end; ++it) {
    const std::string name = NameOfVersion((*it)[1]), number = (*it)[2];
    std::string key = name;
    std::replace(key.begin(), key.end(), ' ', '_');
    EXPECT_THAT(text.out, HasSubstr(fmt::format("\n{:<20}{}\n", name, number)));
    EXPECT_EQ(object[key], std::stoi(number)) << key;
    ++numbers;
  }
  EXPECT_GE(numbers, 6);
  for (const char* name :
       {"package format", "measurement policy", "device class", "feature schema"})
    EXPECT_THAT(text.out, HasSubstr(fmt::format("\n{:<20}", name)));
}

struct BadLine {
  std::vector<std::string> words;
  const char* message;
};

class BadLineTest : public ::testing::TestWithParam<BadLine> {};

TEST_P(BadLineTest, EndsWith2AndSaysWhatIsAccepted) {
  const ProgramRun run = RunHone(GetParam().words);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadLineTest,
    ::testing::Values(
        BadLine{{"-q"}, "hone: error: -q comes after a command; one of tune, compile"},
        BadLine{{"-v"}, "hone: error: there is no option -v; did you mean --version?"},
        BadLine{{"--verison"}, "there is no option --verison; did you mean --version?"},
        BadLine{{"tun", "m.onnx"}, "there is no command \"tun\"; did you mean tune?"},
        BadLine{{"zoo", "resnet81"}, "there is no \"resnet81\"; did you mean resnet18?"},
        BadLine{{"db", "stat"}, "ACTION: there is no \"stat\"; did you mean stats?"},
        BadLine{{"zo"}, "there is no command \"zo\"; did you mean zoo?"},
        BadLine{{"frobnicate"}, "there is no command \"frobnicate\"; one of"},
        BadLine{{"zoo"}, "hone zoo: error: NAME is missing; one of list, resnet18"},
        BadLine{{"zoo", "alexnet"}, "there is no \"alexnet\"; one of list, resnet18"},
        BadLine{{"zoo", "mlp", "extra"}, "\"extra\" is one argument too many"},
        BadLine{{"zoo", "mlp", "--sede", "1"}, "there is no option --sede; did you mean --seed?"},
        BadLine{{"zoo", "mlp", "--seed"}, "hone zoo: error: --seed needs a value; see"},
        BadLine{{"zoo", "mlp", "--seed", "x"}, "--seed: \"x\" is not a whole number"},
        BadLine{{"zoo", "mlp", "--seed", "-1"}, "--seed"},
        BadLine{{"zoo", "mlp", "--seed", "1", "--seed", "2"}, "--seed is given 2 times"},
        BadLine{{"zoo", "mlp", "--output="}, "--output"},
        BadLine{{"tune", "m.onnx", "--secs", "9"}, "no option --secs; did you mean --seconds?"},
        BadLine{{"bench", "m.onnx", "--jobs=2"}, "no option --jobs=2; did you mean --threads?"},
        BadLine{{"bench", "m.onnx", "--seconds", "1x"}, "\"1x\" is no time; give seconds, or 90s"},
        BadLine{{"build", "m.onnx"}, "there is no command \"build\"; did you mean compile?"},
        BadLine{{"man", "zooo"}, "there is no command \"zooo\""}));

TEST(ProgramTest, AnErrorIsJsonWhenAskedFor) {
  const ProgramRun run = RunHone({"zoo", "mlp", "--json", "-o", "/dev/null/x.onnx"});
  EXPECT_EQ(run.exit_code, 3);
  const auto object = nlohmann::json::parse(run.out);
  EXPECT_EQ(object["error"]["code"], 3);
  EXPECT_EQ(object["error"]["name"], "bad_input");
  EXPECT_THAT(object["error"]["message"].get<std::string>(), HasSubstr("/dev/null/x.onnx"));
  EXPECT_THAT(run.err, StartsWith("hone zoo: error: "));
}

TEST(ProgramTest, AnErrorOfAnOptionThatNobodyTypedNamesTheConfigFile) {
  const TemporaryFolder home;
  const std::string config = home.Path(".config/hone/config.toml"), model = home.Path("m.onnx");
  std::filesystem::create_directories(home.Path(".config/hone"));
  ASSERT_EQ(RunHone({"zoo", "mlp", "-o", model}).exit_code, 0);
  for (const auto& [text, message] :
       {std::pair("dim = \"n=3\"", "--dim n=3: the model has no such dimension; it has: none (dim"),
        std::pair("bind = [\"a\"]", "--bind: \"a\" is not NAME=VALUE (bind"),
        std::pair("target = \"cpu:foo\"", "(target")}) {
    ASSERT_TRUE(WriteFileAtomically(config, text).ok());
    const ProgramRun run = RunHone({"inspect", model}, home.path());
    EXPECT_NE(run.exit_code, 0);
    EXPECT_THAT(run.err, HasSubstr(message));
    EXPECT_THAT(run.err, HasSubstr(" stands in '" + config + "')\n"));
  }
  // The line's own words need no such hint.
  ASSERT_TRUE(WriteFileAtomically(config, "dim = \"n=3\"").ok());
  const ProgramRun run = RunHone({"inspect", model, "--dim", "k=1"}, home.path());
  EXPECT_THAT(run.err, Not(HasSubstr("stands in")));
}

TEST(ProgramTest, AnErrorIsJsonWhenTheConfigFileAsksForIt) {
  const TemporaryFolder home;
  std::filesystem::create_directories(home.Path(".config/hone"));
  const auto configure = [&](const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(home.Path(".config/hone/config.toml"), text).ok());
  };
  configure("json = true\n");
  for (const auto& [words, code] :
       {std::pair(std::vector<std::string>{"zoo", "mlp", "-o", "/dev/null/x.onnx"}, 3),
        std::pair(std::vector<std::string>{"zoo", "mlp", "--seed", "x"}, 2),
        std::pair(std::vector<std::string>{"frobnicate"}, 2)}) {
    const ProgramRun run = RunHone(words, home.path());
    EXPECT_EQ(run.exit_code, code);
    const auto object = nlohmann::json::parse(run.out, nullptr, false);
    ASSERT_TRUE(object.is_object()) << run.out << run.err;
    EXPECT_EQ(object["error"]["code"], code);
  }
  // For one command only, and not against it.
  configure("[tune]\njson = true\n");
  EXPECT_EQ(RunHone({"zoo", "mlp", "--seed", "x"}, home.path()).out, "");
  configure("json = true\n[zoo]\njson = false\n");
  EXPECT_EQ(RunHone({"zoo", "mlp", "--seed", "x"}, home.path()).out, "");
}

TEST(ProgramTest, AFullDiskEndsWith9) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const ProgramRun full = testing::RunProcess(
      {"/bin/sh", "-c", "\"$0\" man > /dev/full", testing::HoneProgram()}, "/dev/null");
  EXPECT_EQ(full.exit_code, 9);
  EXPECT_THAT(full.err, HasSubstr("cannot write to standard output"));
}

/// What config.toml says for all runs must not stand in the way of one.
TEST(ProgramTest, TheLineReplacesWhatExcludesItInTheConfigFile) {
  const TemporaryFolder home;
  std::filesystem::create_directories(home.Path(".config/hone"));
  const std::string model = home.Path("m.onnx"), package = home.Path("m.hone");
  ASSERT_EQ(RunHone({"zoo", "mlp", "-o", model}).exit_code, 0);
  ASSERT_EQ(RunHone({"compile", model, "-o", package}).exit_code, 0);
  ASSERT_TRUE(WriteFileAtomically(home.Path(".config/hone/config.toml"),
                                  "db = '" + home.Path("none.db") +
                                      "'\ntarget = 'cpu:avx2'\n[tune]\nseconds = 600\n")
                  .ok());
  const std::string& path = home.path();
  const ProgramRun bench = RunHone({"bench", package, "--seconds", "0.01"}, path);
  EXPECT_EQ(bench.exit_code, 0) << bench.err;
  const ProgramRun named = RunHone({"bench", package, "--target", "cpu:avx2"}, path);
  EXPECT_EQ(named.exit_code, 2) << named.err;
  const ProgramRun tune = RunHone({"tune", model, "--minutes", "2", "--dry-run"}, path);
  EXPECT_EQ(tune.exit_code, 0) << tune.err;
  EXPECT_THAT(tune.err, HasSubstr("budget 2:00"));
  const ProgramRun traces =
      RunHone({"compile", model, "-o", package, "--traces", home.path()}, path);
  EXPECT_EQ(traces.exit_code, 0) << traces.err;
  const ProgramRun log = RunHone({"compile", model, "-o", package}, path);
  EXPECT_THAT(log.err, HasSubstr("there is no log")) << "the log that the file names is used";
}

TEST(ProgramTest, WhatTheConfigFileSaysForAllIsInNobodysWay) {
  const TemporaryFolder home;
  std::filesystem::create_directories(home.Path(".config/hone"));
  const std::string model = home.Path("m.onnx"), package = home.Path("m.hone");
  ASSERT_EQ(RunHone({"zoo", "mlp", "-o", model}).exit_code, 0);
  ASSERT_TRUE(WriteFileAtomically(home.Path(".config/hone/config.toml"),
                                  "threads = 2\ndevice-class = 'cpu/acme/1'\n"
                                  "accuracy = 'strict'\nrequire = 'exact'\n")
                  .ok());
  const std::string& path = home.path();
  const ProgramRun target = RunHone(
      {"compile", model, "-o", package, "--require", "default", "--target", "cpu:avx2,threads=4"},
      path);
  EXPECT_EQ(target.exit_code, 0) << target.err;
  EXPECT_THAT(target.out, HasSubstr("cpu:avx2,threads=4"));
  const ProgramRun tune = RunHone({"tune", model, "--dry-run"}, path);
  EXPECT_EQ(tune.exit_code, 0) << tune.err;
  const ProgramRun named = RunHone({"tune", model, "--dry-run", "--device-class", "cpu/x"}, path);
  EXPECT_EQ(named.exit_code, 2) << named.err;
  const ProgramRun traces = RunHone({"compile", model, "-o", package, "--traces", path}, path);
  EXPECT_EQ(traces.exit_code, 0) << traces.err;
  const ProgramRun both =
      RunHone({"compile", model, "-o", package, "--traces", path, "--accuracy", "strict"}, path);
  EXPECT_EQ(both.exit_code, 2) << both.err;
}

TEST(ProgramTest, AGeneralKeyIsCheckedForTheCommandThatUsesIt) {
  const TemporaryFolder home;
  std::filesystem::create_directories(home.Path(".config/hone"));
  // More than a day is for tune alone.
  ASSERT_TRUE(
      WriteFileAtomically(home.Path(".config/hone/config.toml"), "seconds = 100000\n").ok());
  const ProgramRun bench = RunHone({"bench", "x.onnx"}, home.path());
  EXPECT_EQ(bench.exit_code, 2);
  EXPECT_THAT(bench.err, HasSubstr("config.toml: --seconds: \"100000\" is out of range"));
  EXPECT_EQ(RunHone({"tune", "x.onnx"}, home.path()).exit_code, 3);
}

TEST(ProgramTest, OptionsComeFromTheConfigFile) {
  const TemporaryFolder home;
  std::filesystem::create_directories(home.Path(".config/hone"));
  ASSERT_TRUE(WriteFileAtomically(home.Path(".config/hone/config.toml"), "[zoo]\nseed = 7\n").ok());
  const auto weights = [&](const std::vector<std::string>& more, const std::string& user) {
    std::vector<std::string> words = {"zoo", "mlp", "-o", home.Path("m.onnx")};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(RunHone(words, user).exit_code, 0);
    return *ReadFile(home.Path("m.onnx"));
  };
  const std::string configured = weights({}, home.path());
  EXPECT_EQ(configured, weights({"--seed", "7"}, "/dev/null"));
  EXPECT_NE(configured, weights({"--seed", "8"}, home.path())) << "the line wins";
  ASSERT_TRUE(WriteFileAtomically(home.Path(".config/hone/config.toml"), "colour = 'red'\n").ok());
  const ProgramRun refused = RunHone({"zoo", "mlp"}, home.path());
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("config.toml:1: \"colour\" is not an option"));
}

TEST(ProgramTest, ManWritesAPageForEveryCommand) {
  const TemporaryFolder folder;
  ASSERT_EQ(RunHone({"man", "-o", folder.Path("man1")}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder.Path("man1/hone.1")));
  for (const CommandSpec& command : Commands()) {
    EXPECT_TRUE(
        std::filesystem::exists(folder.Path("man1/hone-" + std::string(command.name) + ".1")));
  }
  EXPECT_THAT(RunHone({"man", "zoo"}).out, StartsWith(".TH hone\\-zoo 1"));
}

}  // namespace
}  // namespace hone::client
