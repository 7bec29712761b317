#include "server/web/failures.h"

#include <algorithm>
#include <cctype>

namespace hone::server::web {
namespace {

constexpr size_t kMostCauseBytes = 160;
constexpr size_t kMostMessageBytes = 4000;

bool IsWordByte(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

std::string CauseOf(const std::string& message) {
  const std::string line = message.substr(0, message.find('\n')).substr(0, kMostCauseBytes);
  std::string cause;
  for (size_t i = 0; i < line.size();) {
    const bool begins_word = i == 0 || !IsWordByte(line[i - 1]);
    if (!begins_word || std::isdigit(static_cast<unsigned char>(line[i])) == 0) {
      cause += line[i++];
      continue;
    }
    while (i < line.size() && IsWordByte(line[i])) ++i;
    cause += '#';
  }
  return cause.empty() ? "no reason was given" : cause;
}

void Failures::Add(const db::Attempt& attempt) {
  std::pair<int, std::string> key{static_cast<int>(attempt.outcome), CauseOf(attempt.message)};
  if (causes_.size() >= kMostCauses && !causes_.contains(key)) key.second = "others";
  FailureCause& cause = causes_[key];
  cause.outcome = attempt.outcome;
  cause.cause = key.second;
  ++cause.count;
  db::Attempt example = attempt;
  example.trace.clear();
  if (example.message.size() > kMostMessageBytes) example.message.resize(kMostMessageBytes);
  cause.examples.insert(cause.examples.begin(), std::move(example));
  if (cause.examples.size() > kMostExamples) cause.examples.pop_back();
}

std::vector<FailureCause> Failures::ByCount() const {
  std::vector<FailureCause> causes;
  for (const auto& [key, cause] : causes_) causes.push_back(cause);
  std::ranges::stable_sort(causes, std::ranges::greater(), &FailureCause::count);
  return causes;
}

}  // namespace hone::server::web
