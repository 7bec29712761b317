// The commands that take a model, run as programs on networks of the zoo.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "base/file.h"
#include "client/npz.h"
#include "tests/client/python.h"
#include "tests/client/run_hone.h"

namespace hone::client {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;
using testing::ProgramRun;
using testing::RunHone;
using testing::TemporaryFolder;

json Parse(const ProgramRun& run) {
  const json object = json::parse(run.out, nullptr, false);
  EXPECT_FALSE(object.is_discarded()) << run.out << run.err;
  return object;
}

class ModelCommandsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(RunHone({"zoo", "mlp", "-o", model_}).exit_code, 0);
    std::vector<double> values;
    for (int i = 0; i < 784; ++i) values.push_back((i % 29) * 0.05 - 0.7);
    ASSERT_TRUE(
        WriteNpz(inputs_, {{"input", *graph::MakeConstant(ir::DType::kF32, {1, 784}, values)}})
            .ok());
  }
  void Compile() {
    const ProgramRun run = RunHone({"compile", model_, "-o", package_, "--threads", "1"});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("default"));
  }
  const TemporaryFolder folder_;
  const std::string model_ = folder_.Path("mlp.onnx");
  const std::string package_ = folder_.Path("mlp.hone");
  const std::string inputs_ = folder_.Path("x.npz");
  const std::string outputs_ = folder_.Path("y.npz");
};

TEST_F(ModelCommandsTest, ModelAndPackageGiveTheSameAnswer) {
  Compile();
  const ProgramRun first =
      RunHone({"run", model_, "--threads", "1", "--inputs", inputs_, "--outputs", outputs_});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const ProgramRun second = RunHone({"run", package_, "--inputs", inputs_, "--expect", outputs_,
                                     "--absolute", "0", "--relative", "0"});
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("as expected"));
}

TEST_F(ModelCommandsTest, AgreesWithOnnxRuntime) {
  HONE_SKIP_WITHOUT_PYTHON();
  const auto python = testing::RunPython(R"(
import sys, numpy as np, onnxruntime as ort
s = ort.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
feeds = dict(np.load(sys.argv[2]))
np.savez(sys.argv[3], **dict(zip([o.name for o in s.get_outputs()], s.run(None, feeds))))
)",
                                         {model_, inputs_, folder_.Path("e.npz")});
  ASSERT_EQ(python.exit_code, 0) << python.err;
  const ProgramRun run =
      RunHone({"run", model_, "--inputs", inputs_, "--expect", folder_.Path("e.npz"), "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const json object = Parse(run);
  EXPECT_EQ(object["outputs"][0]["name"], "output");
  EXPECT_EQ(object["outputs"][0]["shape"], json({1, 10}));
  EXPECT_EQ(object["outputs"][0]["differing"], 0);
}

// The package says what it is and how far it is from f32; so far `run --expect` lets it be.
TEST_F(ModelCommandsTest, PrecisionIsKeptAndItsErrorMeasured) {
  ASSERT_EQ(RunHone({"run", model_, "--inputs", inputs_, "--outputs", outputs_}).exit_code, 0);
  const ProgramRun made =
      RunHone({"compile", model_, "-o", package_, "--threads", "1", "--precision", "bf16"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("precision bf16"));
  EXPECT_THAT(RunHone({"inspect", package_}).out,
              HasSubstr("precision bf16, accuracy class default; against f32: noise "));
  const json numbers = Parse(RunHone({"inspect", package_, "--json"}))["numbers"];
  EXPECT_EQ(numbers["precision"], "bf16");
  EXPECT_EQ(numbers["accuracy"], "default");
  EXPECT_GT(numbers["error"]["noise"], 1e-4);
  EXPECT_LT(numbers["error"]["noise"], 0.02);
  const ProgramRun run = RunHone({"run", package_, "--inputs", inputs_, "--expect", outputs_});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const ProgramRun exact = RunHone({"run", package_, "--inputs", inputs_, "--expect", outputs_,
                                    "--absolute", "1e-5", "--relative", "1e-5"});
  EXPECT_EQ(exact.exit_code, 10) << exact.out;
  const std::string narrow = folder_.Path("narrow.npz");
  ASSERT_EQ(RunHone({"run", package_, "--inputs", inputs_, "--outputs", narrow}).exit_code, 0);
  const ProgramRun model =
      RunHone({"run", model_, "--threads", "1", "--precision", "bf16", "--inputs", inputs_,
               "--expect", narrow, "--absolute", "0", "--relative", "0"});
  EXPECT_EQ(model.exit_code, 0) << model.err;
  EXPECT_EQ(RunHone({"check", model_, "--precision", "bf16"}).exit_code, 0);

  Compile();
  EXPECT_THAT(RunHone({"inspect", package_}).out,
              HasSubstr("precision f32, accuracy class default\n"));
  ASSERT_EQ(RunHone({"compile", model_, "-o", package_, "--precision", "f16"}).exit_code, 0);
  const json half = Parse(RunHone({"inspect", package_, "--json"}))["numbers"];
  EXPECT_LT(half["error"]["noise"], 1e-3) << half;
}

TEST_F(ModelCommandsTest, PrecisionsThatAreNoneAreRefused) {
  const ProgramRun odd = RunHone({"bench", model_, "--precision", "int8"});
  EXPECT_EQ(odd.exit_code, 2);
  EXPECT_THAT(odd.err, HasSubstr("--precision"));
  Compile();
  const ProgramRun package = RunHone({"run", package_, "--precision", "bf16"});
  EXPECT_EQ(package.exit_code, 2);
  EXPECT_THAT(package.err, HasSubstr("--precision has no meaning for it"));
}

// Else what came out would be compared with itself.
TEST_F(ModelCommandsTest, AnExpectedFileIsReadBeforeOutputsAreWritten) {
  const std::string same = folder_.Path("same.npz");
  const ProgramRun run =
      RunHone({"run", model_, "--inputs", inputs_, "--expect", same, "--outputs", same});
  EXPECT_NE(run.exit_code, 0) << run.out;
  EXPECT_FALSE(std::filesystem::exists(same));
}

TEST_F(ModelCommandsTest, DifferingOutputsEndWith10AndSayWhere) {
  ASSERT_EQ(RunHone({"run", model_, "--inputs", inputs_, "--outputs", outputs_}).exit_code, 0);
  const NamedTensors right = *ReadNpz(outputs_);
  std::vector<double> values = right[0].second.AsDoubles();
  values[7] += 5;
  const std::string wrong = folder_.Path("wrong.npz");
  ASSERT_TRUE(
      WriteNpz(wrong, {{"output", *graph::MakeConstant(ir::DType::kF32, {1, 10}, values)}}).ok());
  const ProgramRun run = RunHone({"run", model_, "--inputs", inputs_, "--expect", wrong, "--json"});
  EXPECT_EQ(run.exit_code, 10);
  EXPECT_THAT(run.err, HasSubstr("output output (f32[1,10]) differs"));
  EXPECT_THAT(run.err, HasSubstr("1 of 10 elements; the worst is [0, 7]"));
  const json object = Parse(run);
  EXPECT_EQ(object["error"]["name"], "outputs_differ");
  EXPECT_EQ(object["outputs"][0]["differing"], 1);
}

TEST_F(ModelCommandsTest, BadInputEndsWith3) {
  const ProgramRun absent = RunHone({"run", folder_.Path("absent.onnx"), "--inputs", inputs_});
  EXPECT_EQ(absent.exit_code, 3);
  EXPECT_THAT(absent.err, HasSubstr("absent.onnx"));
  ASSERT_TRUE(WriteFileAtomically(folder_.Path("noise.onnx"), std::string(500, '\x5a')).ok());
  EXPECT_EQ(RunHone({"inspect", folder_.Path("noise.onnx")}).exit_code, 3);
  ASSERT_TRUE(WriteFileAtomically(folder_.Path("m.pt"), "PK").ok());
  EXPECT_THAT(RunHone({"compile", folder_.Path("m.pt")}).err, HasSubstr("onnx"));
  const ProgramRun missing = RunHone({"run", model_});
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_THAT(missing.err, HasSubstr("no value: input: f32[1,784]"));
}

TEST_F(ModelCommandsTest, ADamagedPackageEndsWith3AndASoundOneRefusesModelOptions) {
  Compile();
  std::string bytes = *ReadFile(package_);
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(folder_.Path("bad.hone"), bytes).ok());
  EXPECT_EQ(RunHone({"run", folder_.Path("bad.hone"), "--inputs", inputs_}).exit_code, 3);
  const ProgramRun target = RunHone({"bench", package_, "--target", "cpu:avx2"});
  EXPECT_EQ(target.exit_code, 2);
  EXPECT_THAT(target.err, HasSubstr("is a package"));
}

TEST_F(ModelCommandsTest, CompilingTwiceGivesTheSameBytes) {
  Compile();
  const std::string first = *ReadFile(package_);
  Compile();
  EXPECT_EQ(*ReadFile(package_), first);
}

TEST_F(ModelCommandsTest, CompileTellsEachKernelsRung) {
  const ProgramRun run =
      RunHone({"compile", model_, "-o", package_, "--json", "--target", "cpu:avx2"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json object = Parse(run);
  EXPECT_THAT(object["target"].get<std::string>(), HasSubstr("cpu:avx2,threads="));
  ASSERT_FALSE(object["kernels"].empty());
  for (const json& kernel : object["kernels"]) {
    EXPECT_EQ(kernel["rung"], "default");
    EXPECT_EQ(kernel["workload"].get<std::string>().size(), 32U);
  }
  EXPECT_EQ(RunHone({"compile", model_, "-o", "/dev/null/x.hone"}).exit_code, 3);
  EXPECT_EQ(RunHone({"compile", model_, "--target", "cpu:sse"}).exit_code, 2);
}

TEST_F(ModelCommandsTest, BenchPrintsOneObject) {
  Compile();
  const ProgramRun run =
      RunHone({"bench", package_, "--seconds", "0.05", "--json", "--threads", "1"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json object = Parse(run);
  for (const char* key : {"model", "version", "threads", "median_us", "min_us", "p10_us", "p90_us",
                          "p99_us", "p999_us", "runs_per_second", "samples_us"}) {
    EXPECT_TRUE(object.contains(key)) << key;
  }
  EXPECT_EQ(object["model"], "mlp");
  EXPECT_EQ(object["threads"], 1);
  const auto samples = object["samples_us"].get<std::vector<double>>();
  EXPECT_GE(samples.size(), 5U);
  EXPECT_LE(object["min_us"], object["p10_us"]);
  EXPECT_LE(object["p10_us"], object["median_us"]);
  EXPECT_LE(object["median_us"], object["p90_us"]);
  EXPECT_GT(object["min_us"].get<double>(), 0);
}

// A package tells of its kernels what the model does.
TEST_F(ModelCommandsTest, BenchProfilesEveryKernel) {
  Compile();
  std::set<std::string> names[2];
  for (const std::string& file : {model_, package_}) {
    SCOPED_TRACE(file);
    const ProgramRun run = RunHone({"bench", file, "--seconds", "0.05", "--json", "--profile",
                                    "--outputs", outputs_, "--inputs", inputs_});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const json object = Parse(run);
    ASSERT_FALSE(object["profile"].empty());
    double flop = 0;
    for (const json& kernel : object["profile"]) {
      EXPECT_GT(kernel["us"].get<double>(), 0);
      EXPECT_GT(kernel["bytes"].get<double>(), 0);
      EXPECT_GT(kernel["roofline_share"].get<double>(), 0);
      flop += kernel["flop"].get<double>();
      EXPECT_NE(kernel["name"], kernel["workload"]);
      names[file == package_].insert(kernel["name"].get<std::string>());
    }
    const double contractions = 2.0 * (784 * 256 + 256 * 128 + 128 * 10);
    EXPECT_GE(flop, contractions);
    EXPECT_LE(flop, contractions + 3 * (256 + 128 + 10));
    EXPECT_EQ((*ReadNpz(outputs_))[0].first, "output");
  }
  EXPECT_EQ(names[1], names[0]);
}

TEST_F(ModelCommandsTest, InspectTellsPassesKernelsAndMemory) {
  const json object = Parse(RunHone({"inspect", model_, "--json"}));
  EXPECT_EQ(object["inputs"][0]["name"], "input");
  EXPECT_FALSE(object["passes"].empty());
  double flop = 0;
  for (const json& kernel : object["kernels"]) {
    flop += kernel["flop"].get<double>() * kernel["count"].get<double>();
    EXPECT_GT(kernel["bound_us"].get<double>(), 0);
  }
  EXPECT_GE(flop, 2.0 * (784 * 256 + 256 * 128 + 128 * 10));
  const json& memory = object["memory"];
  EXPECT_LE(memory["lower_bound_bytes"], memory["peak_bytes"]);
  EXPECT_LE(memory["peak_bytes"], memory["sum_bytes"]);
  const std::string hash = object["kernels"][0]["workload"].get<std::string>();
  const ProgramRun kernel = RunHone({"inspect", model_, "--kernel", hash.substr(0, 8)});
  EXPECT_EQ(kernel.exit_code, 0) << kernel.err;
  EXPECT_THAT(kernel.out, HasSubstr("workload 1\n"));
  EXPECT_THAT(kernel.out, HasSubstr("trace\n"));
  EXPECT_EQ(RunHone({"inspect", model_, "--kernel", "zz"}).exit_code, 2);
}

TEST_F(ModelCommandsTest, InspectReadsAPackage) {
  Compile();
  const json object = Parse(RunHone({"inspect", package_, "--json"}));
  EXPECT_EQ(object["outputs"][0]["shape"], json({1, 10}));
  EXPECT_EQ(object["kernels"][0]["rung"], "default");
  EXPECT_GE(object["kernels"][0]["flop"], 2 * 784 * 256);
  EXPECT_GE(object["kernels"][0]["bytes"], 4 * 784 * 256);
  const std::string text = RunHone({"inspect", package_}).out;
  EXPECT_THAT(text, HasSubstr("input: f32[1,784]"));
  EXPECT_THAT(text, HasSubstr(object["kernels"][0]["name"].get<std::string>()));
}

TEST_F(ModelCommandsTest, TracesFromAFolderAreUsed) {
  const json object = Parse(RunHone({"inspect", model_, "--json"}));
  const std::string hash = object["kernels"][0]["workload"].get<std::string>();
  const std::string text = RunHone({"inspect", model_, "--kernel", hash}).out;
  const std::string trace = text.substr(text.find("\ntrace\n") + 7);
  std::filesystem::create_directories(folder_.Path("traces"));
  const std::string file = folder_.Path("traces/" + hash + ".trace");
  ASSERT_TRUE(WriteFileAtomically(file, trace).ok());
  const json used = Parse(
      RunHone({"compile", model_, "-o", package_, "--traces", folder_.Path("traces"), "--json"}));
  int exact = 0;
  for (const json& kernel : used["kernels"]) exact += kernel["rung"] == "exact" ? 1 : 0;
  EXPECT_EQ(exact, 1);
  ASSERT_TRUE(WriteFileAtomically(file, "split(((").ok());
  const ProgramRun bad = RunHone({"compile", model_, "--traces", folder_.Path("traces")});
  EXPECT_EQ(bad.exit_code, 3);
  EXPECT_THAT(bad.err, HasSubstr(hash + ".trace"));
}

TEST_F(ModelCommandsTest, CheckFindsEveryKernelRight) {
  const ProgramRun run = RunHone({"check", model_, "--json", "--every-step"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json object = Parse(run);
  EXPECT_EQ(object["ok"], true);
  std::set<std::string> workloads;
  for (const json& step : object["steps"]) {
    EXPECT_GT(step["points"], 0);
    workloads.insert(step["workload"].get<std::string>());
  }
  EXPECT_EQ(workloads.size(), Parse(RunHone({"inspect", model_, "--json"}))["kernels"].size());
}

TEST_F(ModelCommandsTest, WhoeverStopsReadingGetsNoError) {
  const auto shell = [&](const std::string& line) {
    return testing::RunProcess({"/bin/sh", "-c", line, testing::HoneProgram(), model_},
                               "/dev/null");
  };
  const ProgramRun abandoned = shell("{ \"$0\" inspect \"$1\"; echo $? >&2; } | true");
  EXPECT_EQ(abandoned.err, "0\n");
  const ProgramRun closed = shell("\"$0\" inspect \"$1\" >&-");
  EXPECT_EQ(closed.exit_code, 9);
  EXPECT_THAT(closed.err, HasSubstr("cannot write to standard output"));
  EXPECT_EQ(shell("\"$0\" inspect \"$1\" >/dev/full").exit_code, 9);
}

TEST_F(ModelCommandsTest, AnOutputThatCannotBeWrittenIsToldBeforeTheWork) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"compile", model_, "-o", "/nosuch/m.hone"},
        {"run", model_, "--inputs", inputs_, "--outputs", "/nosuch/y.npz"},
        {"zoo", "mlp", "-o", "/nosuch/m.onnx"}}) {
    const ProgramRun run = RunHone(words);
    EXPECT_EQ(run.exit_code, 3) << words[0];
    EXPECT_THAT(run.err, HasSubstr("there is no folder '/nosuch'; make it first")) << words[0];
  }
  const ProgramRun folder = RunHone({"compile", model_, "-o", folder_.path()});
  EXPECT_EQ(folder.exit_code, 3);
  EXPECT_THAT(folder.err, HasSubstr("it is a folder"));
  if (::geteuid() == 0) return;  // whom no mode keeps out
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_exec);
  EXPECT_EQ(RunHone({"compile", model_, "-o", package_}).exit_code, 9);
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_all);
}

TEST_F(ModelCommandsTest, AnOutputInPlaceOfAnInputIsRefusedBeforeTheWork) {
  const std::string model = *ReadFile(model_), inputs = *ReadFile(inputs_);
  std::filesystem::create_symlink(model_, folder_.Path("link.onnx"));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"compile", model_, "-o", model_},
        {"compile", model_, "-o", folder_.Path("link.onnx")},
        {"run", model_, "--inputs", inputs_, "--outputs", inputs_},
        {"run", model_, "--inputs", inputs_, "--expect", outputs_, "--outputs", model_},
        {"bench", model_, "--outputs", folder_.Path("mlp.inputs.npz")}}) {
    const ProgramRun run = RunHone(words);
    EXPECT_EQ(run.exit_code, 2) << words[0] << " " << words.back() << ": " << run.err;
    EXPECT_THAT(run.err, HasSubstr("cannot write '" + words.back() + "': this command reads"));
  }
  EXPECT_EQ(*ReadFile(model_), model);
  EXPECT_EQ(*ReadFile(inputs_), inputs);
}

TEST_F(ModelCommandsTest, NamesThatAreNotUtf8AreTold) {
  const std::string model = folder_.Path("m\xff.onnx"), package = folder_.Path("m\xff.hone");
  const std::string replaced = "m\xEF\xBF\xBD";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"zoo", "mlp", "-o", model},
        {"compile", model, "-o", package, "--threads", "1"},
        {"inspect", model},
        {"inspect", package},
        {"bench", package, "--seconds", "0.01"},
        {"run", package, "--inputs", inputs_},
        {"check", model, "--points", "1", "--threads", "1"}}) {
    std::vector<std::string> asked = words;
    asked.push_back("--json");
    const ProgramRun run = RunHone(asked);
    EXPECT_EQ(run.exit_code, 0) << words[0] << ": " << run.err;
    EXPECT_THAT(run.out, HasSubstr(replaced)) << words[0];
  }
}

TEST_F(ModelCommandsTest, InputsBesideTheModelAreDrawnWhereTheyDoNotFit) {
  const std::string beside = folder_.Path("mlp.inputs.npz");
  ASSERT_TRUE(
      WriteNpz(beside, {{"input", *graph::MakeConstant(ir::DType::kF32, {2}, {1.0, 2.0})}}).ok());
  const ProgramRun implicit = RunHone({"bench", model_, "--seconds", "0.01", "--threads", "1"});
  EXPECT_EQ(implicit.exit_code, 0) << implicit.err;
  EXPECT_THAT(implicit.err, HasSubstr("array input is not used, its input is drawn: input input: "
                                      "the model wants f32[1,784], this is f32[2]"));
  EXPECT_EQ(RunHone({"bench", model_, "--inputs", beside, "--threads", "1"}).exit_code, 3);
}

TEST_F(ModelCommandsTest, TensorsInPlaceOfAModelAreRecognised) {
  const ProgramRun run = RunHone({"compile", inputs_});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.err, HasSubstr("a NumPy archive of tensors"));
}

/// The model compiled with a cache in this home folder.
class CacheTest : public ModelCommandsTest {
 protected:
  std::string CompiledBytes(std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"compile", model_, "-o", package_, "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramRun run = RunHone(words, home_.path());
    EXPECT_EQ(run.exit_code, 0) << run.err;
    const auto bytes = ReadFile(package_);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    std::filesystem::remove(package_);
    return bytes.ok() ? *bytes : "";
  }
  json Info() { return Parse(RunHone({"cache", "info", "--json"}, home_.path())); }

  const TemporaryFolder home_;
  const std::string cache_ = home_.Path(".cache/hone");
};

TEST_F(CacheTest, ColdWarmDamagedAndWithoutGiveTheSamePackage) {
  const std::string without = CompiledBytes({"--cache-mb", "0"});
  EXPECT_FALSE(std::filesystem::exists(cache_));
  EXPECT_EQ(CompiledBytes(), without);
  const json cold = Info();
  EXPECT_GT(cold["artifacts"]["files"], 0) << cold;
  EXPECT_EQ(CompiledBytes(), without);
  EXPECT_EQ(Info()["artifacts"], cold["artifacts"]) << "nothing was built again";
  for (const auto& entry : std::filesystem::directory_iterator(cache_ + "/artifacts")) {
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<int64_t>(entry.file_size() / 2));
    file.put('?');
  }
  EXPECT_EQ(CompiledBytes(), without);
  EXPECT_EQ(Info()["artifacts"]["files"], cold["artifacts"]["files"]);
}

TEST_F(CacheTest, CheckRemembersTheOracle) {
  const std::vector<std::string> words = {"check", model_, "--inputs", inputs_, "--json"};
  const json first = Parse(RunHone(words, home_.path()));
  const json cold = Info();
  EXPECT_EQ(cold["oracles"]["files"], first["steps"].size());
  EXPECT_EQ(Parse(RunHone(words, home_.path())), first);
  EXPECT_EQ(Info(), cold);
  // Other points are other values.
  EXPECT_EQ(RunHone({"check", model_, "--inputs", inputs_, "--seed", "1"}, home_.path()).exit_code,
            0);
  EXPECT_GT(Info()["oracles"]["files"], cold["oracles"]["files"]);
}

TEST_F(CacheTest, AFolderThatCannotBeMadeFailsNoCommandButCache) {
  ASSERT_TRUE(WriteFileAtomically(home_.Path(".cache"), "a file").ok());
  EXPECT_NE(CompiledBytes(), "");
  const ProgramRun info = RunHone({"cache", "info"}, home_.path());
  EXPECT_EQ(info.exit_code, 9);
  EXPECT_THAT(info.err, HasSubstr("commands work without it"));
  EXPECT_EQ(RunHone({"cache", "info"}, "").exit_code, 2);
}

TEST_F(CacheTest, ClearDeletesEntriesAndNothingElse) {
  EXPECT_THAT(RunHone({"cache", "info"}, home_.path()).out, HasSubstr("0 files"));
  EXPECT_FALSE(std::filesystem::exists(cache_)) << "asking makes nothing";
  CompiledBytes();
  const std::string mine = cache_ + "/artifacts/mine";
  ASSERT_TRUE(WriteFileAtomically(mine, "x").ok());
  EXPECT_THAT(RunHone({"cache", "clear"}, home_.path()).out, HasSubstr("deleted"));
  EXPECT_EQ(Info()["files"], 0);
  EXPECT_TRUE(std::filesystem::exists(mine));
  std::filesystem::remove(mine);
  EXPECT_EQ(RunHone({"cache", "clear"}, home_.path()).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(cache_));
  EXPECT_EQ(RunHone({"cache", "empty"}, home_.path()).exit_code, 2);
}

TEST(DoctorCommandTest, EndsWith0Or11AndListsItsChecks) {
  const TemporaryFolder home;
  const ProgramRun run = RunHone({"doctor", "--json"}, home.path());
  const json object = Parse(run);
  bool fault = false;
  std::set<std::string> checks;
  for (const json& check : object["checks"]) {
    checks.insert(check["check"].get<std::string>());
    fault |= check["health"] == "fault";
  }
  EXPECT_EQ(run.exit_code, fault ? 11 : 0);
  EXPECT_THAT(checks, Contains("instructions"));
  EXPECT_THAT(checks, Contains("foreign load"));
  EXPECT_THAT(checks, Contains("gpu"));
  EXPECT_EQ(checks.size(), 11U);
}

TEST(DoctorCommandTest, AFaultEndsWith11) {
  if (!std::filesystem::exists("/proc/self")) GTEST_SKIP() << "no /proc";
  // A home on a file system without room.
  const ProgramRun run = RunHone({"doctor"}, "/proc");
  EXPECT_EQ(run.exit_code, 11);
  EXPECT_THAT(run.err, HasSubstr("Hone cannot work here: disk"));
}

}  // namespace
}  // namespace hone::client
