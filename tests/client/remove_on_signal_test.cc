#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/subprocess.h"
#include "client/exit_code.h"
#include "grpcpp/grpcpp.h"
#include "proto/farm_service.h"
#include "tests/client/run_hone.h"

// What a command leaves that is interrupted while a server's log is on its way.
namespace hone::client {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Says the beginning of a log and then nothing.
class HalfSnapshot : public ::testing::Test, public v1::Tuning::Service {
 protected:
  HalfSnapshot() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~HalfSnapshot() override {
    over_.set_value();
    server_->Shutdown();
  }
  grpc::Status Snapshot(grpc::ServerContext*, const v1::SnapshotRequest*,
                        grpc::ServerWriter<v1::SnapshotChunk>* writer) override {
    v1::SnapshotChunk chunk;
    chunk.set_data(std::string(1 << 20, 'x'));
    writer->Write(chunk);
    over_future_.wait();
    return grpc::Status::OK;
  }

  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
      files.push_back(entry.path().filename().string());
    }
    return files;
  }
  /// The command until something of the log is on this disk, and then the signal.
  RunResult Interrupt(std::vector<std::string> words, int signal) {
    words.insert(words.begin(), testing::HoneProgram());
    words.insert(words.end(),
                 {"--server", "127.0.0.1:" + std::to_string(port_), "--insecure-loopback"});
    SubprocessOptions options;
    options.argv = std::move(words);
    options.environment = {"HOME=/dev/null", "TMPDIR=" + folder_.path()};
    options.standard_input = ChildStream::kNull;
    auto child = Subprocess::Spawn(options);
    EXPECT_TRUE(child.ok()) << child.status();
    for (int tries = 0; tries < 3000 && !Has(".tmp"); ++tries) clock_.SleepNs(10'000'000);
    EXPECT_TRUE(Has(".tmp"));
    child->Kill(signal);
    const auto ended = child->Wait(clock_, 30'000'000'000);
    RunResult result;
    if (ended.ok() && ended->has_value()) result.exit_state = **ended;
    std::string text(4096, '\0');
    const ssize_t got = ::read(child->standard_error().get(), text.data(), text.size());
    result.standard_error = text.substr(0, got > 0 ? static_cast<size_t>(got) : 0);
    return result;
  }
  bool Has(const std::string& ending) const {
    for (const std::string& file : Files()) {
      if (file.ends_with(ending)) return true;
    }
    return false;
  }

  const testing::TemporaryFolder folder_;
  const SystemMonotonicClock clock_;
  std::promise<void> over_;
  std::shared_future<void> over_future_ = over_.get_future().share();
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(HalfSnapshot, IsRemovedWhenTheCommandIsInterrupted) {
  const std::vector<std::pair<std::vector<std::string>, int>> commands = {
      {{"db", "stats"}, SIGINT},
      {{"db", "export", "--json", "-o", folder_.Path("e.json")}, SIGTERM},
      {{"db", "snapshot", "-o", folder_.Path("s.db")}, SIGINT}};
  for (const auto& [words, signal] : commands) {
    SCOPED_TRACE(words[1]);
    const RunResult run = Interrupt(words, signal);
    EXPECT_EQ(run.exit_state.code, static_cast<int>(ExitCode::kInterrupted))
        << run.exit_state.ToString();
    EXPECT_THAT(run.standard_error, HasSubstr("hone db: interrupted"));
    EXPECT_THAT(Files(), IsEmpty());
  }
}

}  // namespace
}  // namespace hone::client
