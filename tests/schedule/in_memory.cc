#include "tests/schedule/in_memory.h"

#include <algorithm>
#include <string>

namespace hone::schedule {

Trace InMemory(Trace trace) {
  for (Instruction& i : trace.instructions) {
    if (i.primitive != "compute_at" && i.primitive != "cache_write" && i.primitive != "cache_read")
      continue;
    std::replace(i.positional.begin(), i.positional.end(), std::string("register"),
                 std::string("memory"));
    for (auto& [key, value] : i.named) {
      if (key == "storage" && value == "register") value = "memory";
    }
  }
  return trace;
}

}  // namespace hone::schedule
