#include "ir/parse_lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "ir/half.h"

namespace hone::ir {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsWord(char c) { return IsWordStart(c) || IsDigit(c) || c == '.'; }

struct OperatorSign {
  std::string_view text;
  BinaryOp op;
  int level;
};

// Longer signs first.
constexpr std::array<OperatorSign, 17> kOperators = {{
    {"//", BinaryOp::kDiv, 7},
    {"<<", BinaryOp::kShl, 5},
    {">>", BinaryOp::kShr, 5},
    {"==", BinaryOp::kEq, 4},
    {"!=", BinaryOp::kNe, 4},
    {"<=", BinaryOp::kLe, 4},
    {">=", BinaryOp::kGe, 4},
    {"*", BinaryOp::kMul, 7},
    {"/", BinaryOp::kDiv, 7},
    {"%", BinaryOp::kMod, 7},
    {"+", BinaryOp::kAdd, 6},
    {"-", BinaryOp::kSub, 6},
    {"<", BinaryOp::kLt, 4},
    {">", BinaryOp::kGt, 4},
    {"&", BinaryOp::kAnd, 3},
    {"^", BinaryOp::kXor, 2},
    {"|", BinaryOp::kOr, 1},
}};

template <typename T>
std::errc ReadNumber(std::string_view text, T* value) {
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (code != std::errc()) return code;
  return stop == text.data() + text.size() ? std::errc() : std::errc::invalid_argument;
}

Expr FloatConstant(DType dtype, std::string_view number, std::string* why) {
  double value = 0;
  std::errc code;
  if (dtype == DType::kF64) {
    code = ReadNumber(number, &value);
  } else {
    float narrow = 0;
    code = ReadNumber(number, &narrow);
    value = static_cast<double>(narrow);
  }
  if (code == std::errc() && std::isfinite(value) && !std::isfinite(RoundTo(dtype, value))) {
    code = std::errc::result_out_of_range;
  }
  if (code == std::errc()) return Const(dtype, value);
  *why = code == std::errc::result_out_of_range ? "is out of range for " : "is not a number of ";
  *why += ToString(dtype);
  return nullptr;
}

}  // namespace

absl::Status ParseLexer::status() const {
  return failed() ? absl::InvalidArgumentError(error_) : absl::OkStatus();
}

bool ParseLexer::Fail(const std::string& what) {
  if (failed()) return false;
  const std::string_view before = text_.substr(0, std::min(position_, text_.size()));
  const auto line = 1 + std::ranges::count(before, '\n');
  const size_t start = before.rfind('\n');
  const size_t column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
  error_ = "workload text, line " + std::to_string(line) + ", column " + std::to_string(column) +
           ": " + what;
  return false;
}

void ParseLexer::SkipBlanks() {
  while (!AtEndOfText()) {
    const char c = text_[position_];
    if (c == '#') {
      position_ = std::min(text_.find('\n', position_), text_.size());
      return;
    }
    if (c != ' ' && c != '\t' && c != '\r') return;
    ++position_;
  }
}

bool ParseLexer::AtEndOfLine() {
  SkipBlanks();
  return AtEndOfText() || text_[position_] == '\n';
}

void ParseLexer::SkipLine() {
  position_ = text_.find('\n', position_);
  position_ = position_ == std::string_view::npos ? text_.size() : position_ + 1;
}

bool ParseLexer::ExpectEndOfLine() {
  if (!AtEndOfLine()) return Fail("expected the end of the line, found " + Found());
  SkipLine();
  return true;
}

char ParseLexer::Peek() {
  SkipBlanks();
  return AtEndOfText() ? '\n' : text_[position_];
}

bool ParseLexer::TryTake(std::string_view sign) {
  SkipBlanks();
  if (text_.substr(position_, sign.size()) != sign) return false;
  position_ += sign.size();
  return true;
}

bool ParseLexer::Expect(std::string_view sign, std::string_view where) {
  if (TryTake(sign)) return true;
  return Fail("expected '" + std::string(sign) + "' " + std::string(where) + ", found " + Found());
}

std::string_view ParseLexer::TryIdentifier() {
  if (!IsWordStart(Peek())) return {};
  const size_t start = position_;
  while (!AtEndOfText() && IsWord(text_[position_])) ++position_;
  return text_.substr(start, position_ - start);
}

bool ParseLexer::TryWord(std::string_view word) {
  SkipBlanks();
  const size_t start = position_;
  if (TryIdentifier() == word) return true;
  position_ = start;
  return false;
}

std::optional<int64_t> ParseLexer::Integer(std::string_view what) {
  SkipBlanks();
  int64_t value = 0;
  const char* const begin = text_.data() + position_;
  const auto [stop, code] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (code == std::errc::result_out_of_range) {
    Fail(std::string(what) + " is out of range");
    return std::nullopt;
  }
  if (code != std::errc()) {
    Fail("expected " + std::string(what) + ", found " + Found());
    return std::nullopt;
  }
  position_ += static_cast<size_t>(stop - begin);
  return value;
}

std::string_view ParseLexer::TryNumber() {
  SkipBlanks();
  const auto at = [this](size_t i) { return i < text_.size() ? text_[i] : '\n'; };
  size_t end = position_;
  if (at(end) == '-') ++end;
  if (const std::string_view word = text_.substr(end, 3); word == "inf" || word == "nan") {
    if (IsWord(at(end + 3))) return {};
    end += 3;
  } else {
    if (!IsDigit(at(end))) return {};
    while (IsDigit(at(end))) ++end;
    if (at(end) == '.') ++end;
    while (IsDigit(at(end))) ++end;
    if (at(end) == 'e' || at(end) == 'E') {
      ++end;
      if (at(end) == '+' || at(end) == '-') ++end;
      while (IsDigit(at(end))) ++end;
    }
  }
  const std::string_view number = text_.substr(position_, end - position_);
  position_ = end;
  return number;
}

std::optional<ParseLexer::Sign> ParseLexer::PeekOperator() {
  SkipBlanks();
  for (const OperatorSign& sign : kOperators) {
    if (text_.substr(std::min(position_, text_.size()), sign.text.size()) == sign.text) {
      return Sign{sign.op, sign.level, sign.text.size()};
    }
  }
  return std::nullopt;
}

std::string ParseLexer::Found() {
  if (AtEndOfLine()) return "the end of the line";
  std::string shown;
  for (size_t i = position_; i < text_.size() && text_[i] != '\n' && i < position_ + 12; ++i) {
    shown += text_[i] >= ' ' && text_[i] <= '~' ? text_[i] : '?';
  }
  return "'" + shown + "'";
}

Expr ConstantOf(DType dtype, std::string_view number, std::string* why) {
  if (IsFloat(dtype)) return FloatConstant(dtype, number, why);
  *why = "is not a value of " + std::string(ToString(dtype));
  if (dtype == DType::kU64) {
    uint64_t value = 0;
    if (ReadNumber(number, &value) != std::errc()) return nullptr;
    return ConstInt(dtype, static_cast<int64_t>(value));
  }
  int64_t value = 0;
  if (ReadNumber(number, &value) != std::errc()) return nullptr;
  Expr constant = ConstInt(dtype, value);
  return constant->int_value == value ? constant : nullptr;
}

}  // namespace hone::ir
