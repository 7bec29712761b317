#include "schedule/trace_query.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>

namespace hone::schedule {

const Instruction* FindInstruction(const Trace& trace, std::string_view primitive,
                                   std::string_view first) {
  const auto found = std::ranges::find_if(trace.instructions, [&](const Instruction& i) {
    return i.primitive == primitive && !i.positional.empty() &&
           (first.empty() || i.positional[0] == first);
  });
  return found == trace.instructions.end() ? nullptr : &*found;
}

std::vector<int64_t> FactorsOf(const Trace& trace, std::string_view loop) {
  std::vector<int64_t> factors;
  const Instruction* split = FindInstruction(trace, "split", loop);
  if (split == nullptr || split->positional.size() < 2) return factors;
  const std::string& text = split->positional[1];
  for (size_t at = text.find_first_of("0123456789"); at != std::string::npos;
       at = text.find_first_of("0123456789", text.find_first_not_of("0123456789", at)))
    factors.push_back(std::strtoll(text.c_str() + at, nullptr, 10));
  return factors;
}

std::vector<std::string> OrderOf(const Trace& trace, std::string_view stage) {
  for (const Instruction& i : trace.instructions) {
    if (i.primitive == "reorder" && !i.positional.empty() &&
        i.positional[0].substr(0, i.positional[0].find('.')) == stage)
      return i.positional;
  }
  return {};
}

int64_t PartialsIn(const Instruction* rfactor, int64_t otherwise) {
  if (rfactor == nullptr || rfactor->positional.size() < 3) return otherwise;
  int64_t partials = 0;
  const std::string& text = rfactor->positional[2];
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), partials);
  return error == std::errc() && end == text.data() + text.size() ? partials : otherwise;
}

}  // namespace hone::schedule
