#include "tests/traces/hot_loops.h"

#include <algorithm>
#include <sstream>

namespace hone::testing {
namespace {

/// Lines [first, last] of the text.
struct Range {
  size_t first = 0, last = 0;
};

struct Instruction {
  std::string text, mnemonic, target;  ///< target: the first operand
};

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// What a line says; an empty mnemonic for labels and directives.
Instruction Parse(const std::string& line) {
  Instruction i;
  if (line.empty() || line[0] != '\t' || line.size() < 2 || line[1] == '.') return i;
  const size_t end = std::min(line.find('\t', 1), line.size());
  i.text = line.substr(1);
  i.mnemonic = line.substr(1, end - 1);
  if (end < line.size()) i.target = line.substr(end + 1, line.find(',', end) - end - 1);
  return i;
}

std::vector<Range> Loops(const std::vector<std::string>& lines) {
  std::map<std::string, size_t> labels;
  std::map<size_t, size_t> last_jump;  // by the line of the label
  for (size_t k = 0; k < lines.size(); ++k) {
    if (!lines[k].empty() && lines[k][0] != '\t')
      labels[lines[k].substr(0, lines[k].find(':'))] = k;
    const Instruction i = Parse(lines[k]);
    const auto label = i.mnemonic.starts_with('j') ? labels.find(i.target) : labels.end();
    if (label != labels.end()) last_jump[label->second] = k;
  }
  std::vector<Range> loops;
  loops.reserve(last_jump.size());
  for (const auto& [label, jump] : last_jump) loops.push_back({label, jump});
  return loops;
}

bool IsFusedMultiplyAdd(const std::string& mnemonic) {
  return mnemonic.starts_with("vfmadd") || mnemonic.starts_with("vfnmadd") ||
         mnemonic.starts_with("vfmsub") || mnemonic.starts_with("vfnmsub");
}

/// The fault of an instruction in a hot loop; empty when it has none.
std::string FaultOf(const Instruction& i, const std::string& full) {
  const std::string& m = i.mnemonic;
  // Only the stack pointer: without frames rbp is a register like others.
  if (m == "push" ||
      (i.target.find("[rsp") != std::string::npos && !m.starts_with("cmp") && m != "test"))
    return "stores to the stack";
  if (m.starts_with("call")) return "calls";
  if (m.starts_with("vgather") || m.starts_with("vpgather")) return "gathers";
  const bool arithmetic = IsFusedMultiplyAdd(m) || m.starts_with("vmul") || m.starts_with("vadd") ||
                          m.starts_with("vmax") || m.starts_with("vmin");
  if (arithmetic && !i.target.starts_with(full))
    return "does not use a whole " + full + " register";
  return "";
}

HotLoop Read(const std::vector<std::string>& lines, const Range& range, const std::string& full) {
  HotLoop loop;
  std::map<std::string, int> products;
  for (size_t k = range.first; k <= range.last; ++k) {
    const Instruction i = Parse(lines[k]);
    if (i.mnemonic.empty()) continue;
    if (IsFusedMultiplyAdd(i.mnemonic)) ++loop.steps_of[i.target];
    if (i.mnemonic.starts_with("vmul")) ++products[i.target];
    if (const std::string fault = FaultOf(i, full); !fault.empty())
      loop.faults.push_back(i.text + ": " + fault);
  }
  for (auto& [accumulator, steps] : loop.steps_of) {
    const auto product = products.find(accumulator);
    if (product != products.end()) steps += product->second;
  }
  return loop;
}

}  // namespace

std::vector<HotLoop> HotLoops(const std::string& assembly, const std::string& full) {
  const std::vector<std::string> lines = Lines(assembly);
  const std::vector<Range> loops = Loops(lines);
  std::vector<HotLoop> hot;
  for (const Range& outer : loops) {
    const bool innermost = std::none_of(loops.begin(), loops.end(), [&](const Range& inner) {
      return inner.first != outer.first && outer.first <= inner.first && inner.last <= outer.last;
    });
    if (!innermost) continue;
    HotLoop loop = Read(lines, outer, full);
    if (!loop.steps_of.empty()) hot.push_back(std::move(loop));
  }
  return hot;
}

}  // namespace hone::testing
