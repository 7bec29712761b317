#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "ir/stmt.h"
#include "schedule/lower.h"
#include "tests/schedule/examples.h"
#include "tests/schedule/nest_check.h"

// Traces come from logs that somebody merged: whatever they say, replaying and lowering ends, with
// a nest or a reason, and a nest equals the interpreter.
namespace hone::schedule {
namespace {

constexpr uint64_t kSeeds[] = {7, 77};
constexpr int kMutantsPerSeed = 2500;
/// Nests with more iterations are not run.
constexpr int64_t kMostIterations = 20'000;

int64_t Iterations(const ir::Stmt& s) {
  int64_t sum = s->body.empty() ? 1 : 0;
  for (const auto& inner : s->body) sum = std::min(sum + Iterations(inner), kMostIterations + 1);
  const int64_t times = s->kind == ir::StmtKind::kFor ? s->extent : 1;
  return times > kMostIterations ? kMostIterations + 1 : std::min(sum * times, kMostIterations + 1);
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string Number(Random* r) {
  static const char* kNumbers[] = {"0",
                                   "1",
                                   "2",
                                   "3",
                                   "5",
                                   "8",
                                   "64",
                                   "65",
                                   "-1",
                                   "4096",
                                   "1099511627776",
                                   "9223372036854775807",
                                   "99999999999999999999",
                                   "x"};
  return kNumbers[r->Below(std::size(kNumbers))];
}

/// One number, name or mark of a line becomes another.
void ChangeToken(std::string* line, const std::vector<std::string>& lines, Random* r) {
  static const char* kTokens[] = {
      "s0",       "s1",     "s2",     "s3",   "s1.i0",     "s2.i1",   "s1.r0", "s2.i0.0",
      "register", "memory", "shared", "mask", "two_sizes", "exact",   "inner", "block.x",
      "thread.x", "[1,-1]", "[2,8]",  "[]",   "[i0,i1]",   "at=s1.i0"};
  std::vector<size_t> starts;
  for (size_t i = 0; i < line->size(); ++i) {
    const auto word = [&](size_t k) {
      return std::isalnum(static_cast<unsigned char>((*line)[k])) != 0 || (*line)[k] == '.' ||
             (*line)[k] == '_';
    };
    if (word(i) && (i == 0 || !word(i - 1))) starts.push_back(i);
  }
  if (starts.empty()) return;
  const size_t begin = r->Pick(starts);
  size_t end = begin;
  while (end < line->size() && (std::isalnum(static_cast<unsigned char>((*line)[end])) != 0 ||
                                (*line)[end] == '.' || (*line)[end] == '_'))
    ++end;
  std::string with = r->Chance(0.4) ? Number(r) : kTokens[r->Below(std::size(kTokens))];
  if (r->Chance(0.3)) {
    const std::string& other = r->Pick(lines);
    const size_t open = other.find('(');
    const size_t stop = other.find_first_of(",)", open == std::string::npos ? 0 : open);
    if (open != std::string::npos && stop != std::string::npos)
      with = other.substr(open + 1, stop - open - 1);
  }
  line->replace(begin, end - begin, with);
}

std::string Mutate(const std::string& trace, Random* r) {
  std::vector<std::string> lines = Lines(trace);
  for (int64_t n = r->Chance(0.7) ? 1 : r->Between(2, 4); n > 0 && !lines.empty(); --n) {
    const size_t k = r->Below(lines.size());
    switch (r->Below(10)) {
      case 0:
      case 1: lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(k)); break;
      case 2: lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(k), r->Pick(lines)); break;
      case 3:
      case 4: std::swap(lines[k], lines[std::min(lines.size() - 1, k + r->Below(3))]); break;
      case 5: {
        const char noise = static_cast<char>(r->Below(256));
        if (!lines[k].empty()) lines[k][r->Below(lines[k].size())] = noise;
        break;
      }
      default: ChangeToken(&lines[k], lines, r); break;
    }
  }
  std::string out;
  for (const auto& line : lines) out += line + "\n";
  return out;
}

TEST(TraceFuzz, MutantsAreRefusedOrRight) {
  const std::vector<Example> examples = ReadExamples();
  int unreadable = 0, illegal = 0, lowered = 0, compared = 0;
  for (uint64_t seed : kSeeds) {
    std::cout << "seed " << seed << "\n";
    Random random(seed);
    for (int k = 0; k < kMutantsPerSeed; ++k) {
      const Example& e = random.Pick(examples);
      const std::string text = Mutate(e.trace, &random);
      const auto trace = ParseTrace(text);
      if (!trace.ok()) {
        ++unreadable;
        continue;
      }
      const ir::Workload workload = WorkloadOf(e.workload);
      const auto nest = LowerTrace(workload, *trace, TargetOf("cpu:avx2,threads=2"), {}, "k");
      if (!nest.ok()) {
        ++illegal;
        EXPECT_EQ(nest.status().code(), absl::StatusCode::kInvalidArgument) << nest.status();
        continue;
      }
      ++lowered;
      int64_t iterations = 0;
      for (const auto& phase : nest->nest.phases) iterations += Iterations(phase.body);
      if (iterations > kMostIterations) continue;
      ++compared;
      const CheckResult result = CheckTrace(workload, *trace, {.slack = 2e-5});
      ASSERT_EQ(result.agreement, Agreement::kEqual)
          << "seed " << seed << ", mutant " << k << " of " << e.section << "/" << e.name << ": "
          << result.why << "\n"
          << e.workload << "\n"
          << text << "\n"
          << ir::ToText(result.lowered.nest);
    }
  }
  std::cout << unreadable << " unreadable, " << illegal << " illegal, " << lowered << " lowered, "
            << compared << " compared\n";
  EXPECT_GE(illegal, 500);
  EXPECT_GE(compared, 500);
}

TEST(TraceFuzz, NoiseIsReadOrRefused) {
  Random random(5);
  constexpr char kCharacters[] = "s0123.i=,()[]# ;\n-x/%atsplit\xff\0";
  for (int k = 0; k < 5000; ++k) {
    std::string text;
    for (int64_t n = random.Between(0, 60); n > 0; --n)
      text += kCharacters[random.Below(sizeof(kCharacters) - 1)];
    const auto trace = ParseTrace(text);
    if (!trace.ok()) continue;
    const auto again = ParseTrace(ToText(*trace));
    ASSERT_TRUE(again.ok()) << text;
    EXPECT_EQ(*again, *trace) << text;
  }
}

}  // namespace
}  // namespace hone::schedule
