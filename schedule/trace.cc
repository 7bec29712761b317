#include "schedule/trace.h"

#include <fmt/format.h>

#include <cctype>

#include "base/status.h"

namespace hone::schedule {
namespace {

constexpr size_t kMaxTraceBytes = 1 << 20;
constexpr size_t kMaxInstructions = 4096;

bool IsWordChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
}

/// A cursor over the text; every error carries line and column.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  absl::StatusOr<Trace> Read() {
    Trace trace;
    for (SkipSeparators(); at_ < text_.size(); SkipSeparators()) {
      if (trace.instructions.size() == kMaxInstructions)
        return Error("more than 4096 instructions");
      HONE_ASSIGN_OR_RETURN(Instruction i, ReadInstruction());
      trace.instructions.push_back(std::move(i));
      SkipBlanks();
      if (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != ';' && text_[at_] != '#') {
        return Error("expected the end of the instruction");
      }
    }
    return trace;
  }

 private:
  absl::Status Error(std::string_view what) const {
    int line = 1, column = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) {
      if (text_[i] == '\n')
        ++line, column = 1;
      else
        ++column;
    }
    return absl::InvalidArgumentError(
        fmt::format("trace, line {}, column {}: {}", line, column, what));
  }
  void SkipBlanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  void SkipSeparators() {
    for (;;) {
      SkipBlanks();
      if (at_ < text_.size() && text_[at_] == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == ';')) {
        ++at_;
      } else {
        return;
      }
    }
  }
  bool Eat(char c) {
    SkipBlanks();
    if (at_ < text_.size() && text_[at_] == c) return ++at_, true;
    return false;
  }
  absl::StatusOr<std::string> Word() {
    SkipBlanks();
    size_t begin = at_;
    if (at_ < text_.size() && text_[at_] == '-') ++at_;
    while (at_ < text_.size() && IsWordChar(text_[at_])) ++at_;
    if (at_ == begin) return Error("expected a name or a number");
    return std::string(text_.substr(begin, at_ - begin));
  }
  /// A word, or a bracketed list kept as text without blanks.
  absl::StatusOr<std::string> Argument() {
    SkipBlanks();
    if (at_ >= text_.size() || text_[at_] != '[') return Word();
    std::string out;
    for (; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == '\n' || c == ';') break;
      if (c != ' ' && c != '\t') out += c;
      if (c == ']') return ++at_, out;
    }
    return Error("expected ]");
  }
  absl::StatusOr<Instruction> ReadInstruction() {
    Instruction instruction;
    HONE_ASSIGN_OR_RETURN(instruction.primitive, Word());
    if (Eat('=')) {
      instruction.result = std::move(instruction.primitive);
      HONE_ASSIGN_OR_RETURN(instruction.primitive, Word());
    }
    if (!Eat('(')) return Error("expected (");
    if (Eat(')')) return instruction;
    do {
      HONE_ASSIGN_OR_RETURN(std::string value, Argument());
      if (Eat('=')) {
        HONE_ASSIGN_OR_RETURN(std::string named, Argument());
        instruction.named.emplace_back(std::move(value), std::move(named));
      } else if (!instruction.named.empty()) {
        return Error("a positional argument after a named one");
      } else {
        instruction.positional.push_back(std::move(value));
      }
    } while (Eat(','));
    if (!Eat(')')) return Error("expected , or )");
    return instruction;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string ToText(const Instruction& instruction) {
  std::string out;
  if (!instruction.result.empty()) out = instruction.result + " = ";
  out += instruction.primitive + "(";
  bool first = true;
  for (const auto& p : instruction.positional) {
    if (!first) out += ", ";
    out += p;
    first = false;
  }
  for (const auto& [key, value] : instruction.named) {
    if (!first) out += ", ";
    out += key + "=" + value;
    first = false;
  }
  return out + ")";
}

std::string ToText(const Trace& trace) {
  std::string out;
  for (const auto& i : trace.instructions) out += ToText(i) + "\n";
  return out;
}

absl::StatusOr<Trace> ParseTrace(std::string_view text) {
  if (text.size() > kMaxTraceBytes) return absl::InvalidArgumentError("trace: longer than 1 MiB");
  return Reader(text).Read();
}

}  // namespace hone::schedule
