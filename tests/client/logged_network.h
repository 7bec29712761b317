#pragma once

#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "tests/client/run_hone.h"

namespace hone::client::testing {

/// The network mlp and a log with one record: of its first kernel, the default Trace, measured on a
/// device of "class-a".
class LoggedNetwork : public ::testing::Test {
 protected:
  void SetUp() override;

  /// Another kernel, and model, for Append.
  void TakeKernel(const std::string& model, size_t kernel);
  /// Another record of that kernel.
  void Append(const std::string& trace, double median_ns, bool noisy = false) const;

  static constexpr char kTarget[] = "cpu:avx2,threads=1";
  const TemporaryFolder folder_;
  const std::string model_ = folder_.Path("mlp.onnx");
  const std::string log_ = folder_.Path("tune.db");
  std::string hash_, workload_, trace_;
};

}  // namespace hone::client::testing
