#pragma once

#include <string>

#include "compiler/trace_source.h"

namespace hone::client {

/// Schedules from files FOLDER/HASH.trace, where HASH is the Workload's; kernels without a file get
/// the default. A file that is no Trace is an error that names it.
class FolderTraceSource final : public compiler::TraceSource {
 public:
  explicit FolderTraceSource(std::string folder) : folder_(std::move(folder)) {}

  absl::StatusOr<compiler::FoundTrace> Find(const ir::Workload& workload, const std::string& hash,
                                            const ir::Target& target) override;

 private:
  std::string folder_;
};

}  // namespace hone::client
