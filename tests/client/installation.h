#pragma once

#include <string>
#include <vector>

#include "tests/client/run_hone.h"

namespace hone::client::testing {

/// A copy of `hone` with helper programs of the test's choice: bin/ and libexec/hone/ in a folder.
class Installation {
 public:
  /// `builder` and `runner` are programs to link to; empty: there is none.
  explicit Installation(const std::string& builder = RealHelper("hone-builder"),
                        const std::string& runner = RealHelper("hone-runner"));

  /// A shell script in the builder's place, started for each job.
  void SetBuilderScript(const std::string& script) const;
  /// Runs its `hone` in an empty home folder, by `wrapper` if one is given.
  ProgramRun Run(std::vector<std::string> words, const std::string& wrapper = "") const;

  std::string Program() const { return folder_.Path("bin/hone"); }
  /// Lets every user run it.
  void OpenToAll() const;

  static std::string RealHelper(const std::string& name);
  /// A wrapper that runs its arguments where the kernel refuses seccomp filters.
  static std::string WithoutSeccomp();

 private:
  std::string Helper(const std::string& name) const { return folder_.Path("libexec/hone/" + name); }
  const TemporaryFolder folder_;
};

}  // namespace hone::client::testing
