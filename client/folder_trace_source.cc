#include "client/folder_trace_source.h"

#include "fmt/format.h"

#include "base/file.h"
#include "base/status.h"
#include "schedule/trace.h"

namespace hone::client {

absl::StatusOr<compiler::FoundTrace> FolderTraceSource::Find(const ir::Workload&,
                                                             const std::string& hash,
                                                             const ir::Target&) {
  const std::string path = fmt::format("{}/{}.trace", folder_, hash);
  const auto text = ReadFile(path);
  if (absl::IsNotFound(text.status())) return compiler::FoundTrace{.rung = "default"};
  HONE_RETURN_IF_ERROR(text.status());
  if (const auto trace = schedule::ParseTrace(*text); !trace.ok()) {
    return Annotate(trace.status(), fmt::format("'{}'", path));
  }
  return compiler::FoundTrace{.trace = *text, .rung = "exact"};
}

}  // namespace hone::client
