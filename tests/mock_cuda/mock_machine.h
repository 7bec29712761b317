#pragma once

#include <string>

#include "tests/client/run_hone.h"

namespace hone {

/// A machine with a GPU for programs that a test starts: a folder with the mock driver and its
/// script (mock_script.h), which they find by LD_LIBRARY_PATH.
class MockMachine {
 public:
  /// `script`: its lines.
  explicit MockMachine(const std::string& script = "time real\n");

  /// For processes that start from now on.
  void SetScript(const std::string& script) const;
  client::testing::Variables variables() const { return {"LD_LIBRARY_PATH=" + folder_.path()}; }
  std::string Path(const std::string& name) const { return folder_.Path(name); }
  const std::string& drivers() const { return drivers_; }

 private:
  const client::testing::TemporaryFolder folder_;
  const std::string drivers_ = folder_.path();
};

}  // namespace hone
