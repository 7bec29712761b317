#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "base/core/clock.h"
#include "base/subprocess.h"
#include "tests/client/run_hone.h"

namespace hone::client::testing {

inline constexpr int64_t kMillisecondNs = 1'000'000;

/// What a program printed with --json.
nlohmann::json Parse(const ProgramRun& run);

/// What the attempts of a log say.
struct Measured {
  /// How often a session measured a Trace of a Workload.
  std::map<std::tuple<std::string, std::string, std::string>, int> times;
  std::map<std::string, int> by_session;
  std::map<std::string, std::string> content;  ///< by id
};

/// `hone tune` on a small network with a log of its own: for tests of what it prints and how it
/// ends.
class SmallTuning : public ::testing::Test {
 protected:
  /// Two convolutions and a linear layer: small kernels, some with hundreds of schedules.
  void SetUp() override;

  std::vector<std::string> Words(const std::vector<std::string>& more) const;
  ProgramRun Tune(const std::vector<std::string>& more) const;

  /// Begins one that writes to nobody.
  Subprocess Start(const std::vector<std::string>& more) const;
  /// Begins one, kills it as soon as the log has so many attempts more.
  void TuneAndKill(const std::vector<std::string>& more, size_t attempts) const;
  int ExitCodeOf(Subprocess& child) const;
  /// What an ended child has written to its standard error.
  static std::string ErrorsOf(Subprocess& child);

  Measured ReadLog() const;
  /// Until so many attempts stand in the log.
  void AwaitAttempts(size_t wanted) const;

  /// From now on `program_` is an installation whose builder makes something else of a Workload
  /// with a relu, both convolutions: all their candidates answer wrongly.
  void InstallLyingBuilder();
  /// The same with one that refuses Winograd's Traces: the convolutions have illegal candidates.
  void InstallRefusingBuilder();

  std::string program_ = HoneProgram();
  const SystemMonotonicClock clock_;
  const TemporaryFolder folder_;
  const std::string model_ = folder_.Path("small.onnx");
  const std::string log_ = folder_.Path("tune.db");
};

}  // namespace hone::client::testing
