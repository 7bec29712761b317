#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "ir/expr.h"
#include "ir/value.h"

namespace hone::ir {

/// Walks expressions; what a load means is the subclass's. Keeps the first error, after which every
/// value is zero and means nothing. Not thread-safe.
class ExprEvaluator {
 public:
  virtual ~ExprEvaluator() = default;

  const absl::Status& status() const { return status_; }

 protected:
  /// `vars[id]` are the values of the variables.
  Value Evaluate(const ExprNode& e, std::span<const int64_t> vars);

  /// The same for an integer expression whose error bound does not matter.
  int64_t EvaluateIndex(const ExprNode& e, std::span<const int64_t> vars);

  /// The value of a load whose indices are given.
  virtual Value LoadFrom(const ExprNode& load, std::span<const int64_t> indices,
                         std::span<const int64_t> vars) = 0;

  bool failed() const { return !status_.ok(); }
  void FailWith(absl::Status status);

 private:
  Value EvaluateLoad(const ExprNode& load, std::span<const int64_t> vars);

  absl::Status status_;
};

}  // namespace hone::ir
