#pragma once

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "base/core/hash128.h"
#include "db/model_verdict.h"
#include "tests/client/run_hone.h"

namespace hone::client::testing {

/// A model `model_` (the test's to write), and a log that says which of two ways of running it is
/// faster.
class JudgedWays : public ::testing::Test {
 protected:
  void SetUp() override;

  static constexpr char kClass[] = "class-a";

  /// What `hone compile --json` prints of a model with this log.
  nlohmann::json Compiled(const std::string& model, const std::string& target,
                          std::vector<std::string> more) const;
  /// The hash of the model as look-ups know it, of what Compiled printed.
  static Hash128 ModelOf(const nlohmann::json& compiled);
  /// Appends what a session of this class found: `verdict` with a ratio and no more is completed.
  void Write(db::ModelVerdict verdict) const;
  /// `hone tune --json` of the model for `threads` threads with a few trials, and what
  /// `hone compile --json` prints afterwards; the parts `what` of both.
  void Tune(const std::string& what, int threads, nlohmann::json* found,
            nlohmann::json* compiled) const;

  const TemporaryFolder folder_;
  const std::string model_ = folder_.Path("m.onnx");
  const std::string log_ = folder_.Path("tune.db");
};

}  // namespace hone::client::testing
