#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "base/subprocess.h"
#include "client/bench_turns.h"
#include "client/npz.h"

namespace hone::client {

/// A model in ONNX Runtime, by the python3 that PATH finds, in a process of its own. A run counts
/// from the call in Python to its return; inputs and outputs are bound, not copied.
class OnnxRuntimeSubject final : public BenchSubject {
 public:
  struct Options {
    std::string model_path;  ///< .onnx
    int threads = 1;
    std::vector<int> cpus;  ///< one a thread to pin them to; empty: none is pinned
    std::map<std::string, std::string> bound;  ///< inputs whose values a .npy file has
  };
  /// Loads the model and runs it once. kFailedPrecondition where there is no python3 or it cannot
  /// import onnxruntime; InvalidArgument with its words where it refuses the model.
  static absl::StatusOr<std::unique_ptr<OnnxRuntimeSubject>> Start(const Options& options,
                                                                   const NamedTensors& inputs);

  absl::Status Run(int runs, std::vector<int64_t>& run_ns) override;
  bool spins() const override { return threads_ > 1; }

  /// As in "1.20.1".
  const std::string& version() const { return version_; }

 private:
  OnnxRuntimeSubject(Subprocess process, int threads)
      : process_(std::move(process)), threads_(threads) {}
  absl::Status Tell(std::string_view text);
  /// A line of its answer, without the newline.
  absl::StatusOr<std::string> ReadLine();

  Subprocess process_;
  const int threads_;
  std::string version_;
  std::string unread_;
};

}  // namespace hone::client
