#pragma once

#include <utility>

// One pair of macros for both kinds of status: absl::Status with absl::StatusOr<T>, and the
// runtime's hone::Status with hone::Result<T>.

/// Returns the status from the enclosing function unless it is ok.
#define HONE_RETURN_IF_ERROR(expression)                                   \
  do {                                                                     \
    if (auto hone_status_ = (expression); !hone_status_.ok()) [[unlikely]] \
      return hone_status_;                                                 \
  } while (false)

/// HONE_ASSIGN_OR_RETURN(auto graph, ImportOnnx(bytes)); moves the value out, or returns the error.
/// A declaration with a comma outside parentheses needs an alias or `auto`.
#define HONE_ASSIGN_OR_RETURN(declaration, expression) \
  HONE_ASSIGN_OR_RETURN_(HONE_STATUS_NAME_(hone_result_, __LINE__), declaration, expression)

#define HONE_ASSIGN_OR_RETURN_(result, declaration, expression) \
  auto result = (expression);                                   \
  if (!result.ok()) [[unlikely]]                                \
    return std::move(result).status();                          \
  declaration = *std::move(result)

#define HONE_STATUS_NAME_(prefix, line) HONE_STATUS_NAME_JOIN_(prefix, line)
#define HONE_STATUS_NAME_JOIN_(prefix, line) prefix##line
