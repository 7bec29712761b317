#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "ir/expr.h"

namespace hone::ir {

/// Walks over a text by characters and keeps the first error, which names line and column.
/// Functions that return bool say whether the text was as wanted; after a false `Fail` has been
/// called unless the name begins with Try. The text must outlive it.
class ParseLexer {
 public:
  explicit ParseLexer(std::string_view text) : text_(text) {}

  bool failed() const { return !error_.empty(); }
  /// "workload text, line 3, column 7: …".
  absl::Status status() const;
  /// Records the first error at the current place; always false.
  bool Fail(const std::string& what);

  size_t position() const { return position_; }
  void Seek(size_t position) { position_ = position; }

  bool AtEndOfText() const { return position_ >= text_.size(); }
  /// Skips blanks and, at the end of a line, a comment.
  void SkipBlanks();
  bool AtEndOfLine();
  void SkipLine();
  bool ExpectEndOfLine();

  bool TryTake(std::string_view sign);
  bool Expect(std::string_view sign, std::string_view where);
  char Peek();
  /// [A-Za-z_][A-Za-z0-9_.]*, empty when there is none.
  std::string_view TryIdentifier();
  /// Takes the word only when it stands alone.
  bool TryWord(std::string_view word);
  std::optional<int64_t> Integer(std::string_view what);

  /// [-]digits with fraction and exponent, inf, -inf or nan; empty when there is none.
  std::string_view TryNumber();
  /// The infix operator at this place, which is not taken; its length in `length`.
  struct Sign {
    BinaryOp op;
    int level;
    size_t length;
  };
  std::optional<Sign> PeekOperator();
  /// What stands here, for messages: 'x0[', end of line.
  std::string Found();

 private:
  std::string_view text_;
  size_t position_ = 0;
  std::string error_;
};

/// The constant that `number` denotes; on failure null and *why says what is wrong with it.
Expr ConstantOf(DType dtype, std::string_view number, std::string* why);

}  // namespace hone::ir
