#pragma once

#include <optional>
#include <utility>

#include "base/core/check.h"
#include "base/core/status.h"

namespace hone {

/// A value, or the error why there is none. Reading the value of an error is a programmer error.
template <typename T>
class [[nodiscard]] Result {
 public:
  // Implicit on purpose: `return value;` and `return Status(...)` both read naturally.
  Result(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    HONE_CHECK(!status_.ok()) << "a Result made from a status needs an error";
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  const T& operator*() const& { return Checked(); }
  T& operator*() & {
    Checked();
    return *value_;
  }
  T&& operator*() && {
    Checked();
    return std::move(*value_);
  }
  const T* operator->() const { return &Checked(); }
  T* operator->() { return &**this; }

 private:
  const T& Checked() const {
    HONE_CHECK(value_.has_value()) << status_.ToString();
    return *value_;
  }

  Status status_;
  std::optional<T> value_;
};

}  // namespace hone
