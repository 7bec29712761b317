#include "client/busy_processes.h"

#include <utility>

#include "base/status.h"

namespace hone::client {

absl::StatusOr<BusyProcesses> BusyProcesses::Start(int count) {
  // Our death closes the pipe, which ends the shell that reads it and the loop beside that.
  SubprocessOptions options;
  options.argv = {"/bin/sh", "-c", "while :; do :; done & read end; kill $!"};
  options.standard_output = ChildStream::kNull;
  options.standard_error = ChildStream::kNull;
  BusyProcesses busy;
  for (int i = 0; i < count; ++i) {
    HONE_ASSIGN_OR_RETURN(Subprocess process, Subprocess::Spawn(options));
    busy.processes_.push_back(std::move(process));
  }
  return busy;
}

}  // namespace hone::client
