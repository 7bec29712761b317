#include "schedule/trace_writer.h"

#include <fmt/format.h>

#include "base/status.h"

namespace hone::schedule {

void TraceWriter::Emit(const std::string& instruction) {
  if (!status_.ok()) return;
  auto parsed = ParseTrace(instruction);
  if (!parsed.ok()) {
    status_ = parsed.status();
    return;
  }
  for (const Instruction& i : parsed->instructions) {
    if (absl::Status s = Apply(schedule_, i); !s.ok()) {
      status_ = absl::InternalError(fmt::format("`{}`: {}", ToText(i), std::string(s.message())));
      return;
    }
    trace_.instructions.push_back(i);
  }
}

std::string TraceWriter::NextStage() const { return fmt::format("s{}", schedule_.next_name); }

}  // namespace hone::schedule
