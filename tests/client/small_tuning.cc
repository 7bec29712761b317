#include "tests/client/small_tuning.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "db/log_file.h"
#include "graph/onnx_export/zoo_layers.h"
#include "tests/test_paths.h"

namespace hone::client::testing {

using nlohmann::json;

json Parse(const ProgramRun& run) {
  const json object = json::parse(run.out, nullptr, false);
  EXPECT_FALSE(object.is_discarded()) << run.out << run.err;
  return object;
}

void SmallTuning::SetUp() {
  graph::OnnxWriter writer("small", 1);
  std::string x = writer.Input("input", ir::DType::kF32, {1, 16, 14, 14});
  x = Relu(writer, "relu1",
           Convolution(writer, "conv1", x, {.in = 16, .out = 32, .kernel = 3, .pad = 1}));
  x = Relu(writer, "relu2",
           Convolution(writer, "conv2", x, {.in = 32, .out = 32, .kernel = 3, .pad = 1}));
  x = writer.Node("Flatten", "flat", {x});
  Linear(writer, "output", x, 32 * 14 * 14, 10);
  writer.Output("output", ir::DType::kF32, {1, 10});
  const absl::Status saved = writer.Save(model_);
  ASSERT_TRUE(saved.ok()) << saved;
}

std::vector<std::string> SmallTuning::Words(const std::vector<std::string>& more) const {
  std::vector<std::string> words = {"tune", model_, "--db", log_, "--target", "cpu:avx2,threads=1"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

ProgramRun SmallTuning::Tune(const std::vector<std::string>& more) const {
  std::vector<std::string> words = Words(more);
  words.insert(words.begin(), program_);
  return RunProcess(words, "/dev/null");
}

void SmallTuning::InstallLyingBuilder() {
  // The program looks for its helpers beside itself.
  std::filesystem::create_directories(folder_.Path("bin"));
  std::filesystem::create_directories(folder_.Path("libexec/hone"));
  program_ = folder_.Path("bin/hone");
  std::filesystem::copy_file(HoneProgram(), program_);
  std::filesystem::create_symlink(HONE_LYING_BUILDER, folder_.Path("libexec/hone/hone-builder"));
  std::filesystem::create_symlink(hone::testing::BuildDir() + "/libexec/hone/hone-runner",
                                  folder_.Path("libexec/hone/hone-runner"));
}

void SmallTuning::InstallRefusingBuilder() {
  InstallLyingBuilder();
  std::ofstream(folder_.Path("libexec/hone/hone-builder.refuses"));
}

Subprocess SmallTuning::Start(const std::vector<std::string>& more) const {
  SubprocessOptions options;
  options.argv = Words(more);
  options.argv.insert(options.argv.begin(), program_);
  options.environment = {"PATH=/usr/bin:/bin", "HOME=/dev/null"};
  options.standard_input = ChildStream::kNull;
  options.standard_output = ChildStream::kNull;
  options.standard_error = ChildStream::kNull;
  absl::StatusOr<Subprocess> child = Subprocess::Spawn(options);
  EXPECT_TRUE(child.ok()) << child.status();
  return *std::move(child);
}

void SmallTuning::TuneAndKill(const std::vector<std::string>& more, size_t attempts) const {
  const size_t before = ReadLog().content.size();
  Subprocess child = Start(more);
  AwaitAttempts(before + attempts);
  ::kill(child.pid(), SIGKILL);
  EXPECT_TRUE(child.Wait(clock_, 10'000 * kMillisecondNs).ok());
}

int SmallTuning::ExitCodeOf(Subprocess& child) const {
  const auto exit = child.Wait(clock_, 60'000 * kMillisecondNs);
  EXPECT_TRUE(exit.ok() && exit->has_value()) << "it does not end";
  if (!exit.ok() || !exit->has_value()) return -1;
  EXPECT_TRUE((*exit)->code.has_value()) << (*exit)->ToString();
  return (*exit)->code.value_or(-1);
}

std::string SmallTuning::ErrorsOf(Subprocess& child) {
  std::string said(1 << 16, '\0');
  const ssize_t got = ::read(child.standard_error().get(), said.data(), said.size());
  said.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return said;
}

Measured SmallTuning::ReadLog() const {
  Measured measured;
  if (!std::filesystem::exists(log_)) return measured;
  const auto log = db::OpenLog(log_, {.mode = db::OpenMode::kRead});
  EXPECT_TRUE(log.ok()) << log.status();
  if (!log.ok()) return measured;
  EXPECT_TRUE((*log)
                  ->ScanAttempts({},
                                 [&](const db::Attempt& a) {
                                   const std::string session = a.session.ToHex();
                                   ++measured.by_session[session];
                                   ++measured.times[{session, a.key.workload.ToHex(), a.trace}];
                                   measured.content[a.id.ToHex()] = ContentHash(a).ToHex();
                                   return absl::OkStatus();
                                 })
                  .ok());
  return measured;
}

void SmallTuning::AwaitAttempts(size_t wanted) const {
  const int64_t until_ns = clock_.NowNs() + 40'000 * kMillisecondNs;
  while (ReadLog().content.size() < wanted && clock_.NowNs() < until_ns)
    clock_.SleepNs(50 * kMillisecondNs);
  EXPECT_GE(ReadLog().content.size(), wanted);
}

}  // namespace hone::client::testing
