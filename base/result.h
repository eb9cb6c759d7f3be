#pragma once
// Result<T>: a value or an Error. The base type is named only here, so a newer standard library can
// replace it in one place.

#include <tl/expected.hpp>
#include <utility>

#include "base/error.h"

namespace probed {

template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  Result(Error error) : tl::expected<T, Error>(tl::unexpect, std::move(error)) {}

  bool ok() const { return this->has_value(); }
  explicit operator bool() const = delete;  // say ok(): a Result<bool> would be read wrongly
};

using Status = Result<void>;

}  // namespace probed

#define PROBED_CONCAT_INNER(a, b) a##b
#define PROBED_CONCAT(a, b) PROBED_CONCAT_INNER(a, b)

// PROBED_TRY(auto fd, OpenFile(path)): declares fd, or returns the error from this function.
#define PROBED_TRY(declaration, expression) \
  PROBED_TRY_INNER(PROBED_CONCAT(result_, __COUNTER__), declaration, expression)
#define PROBED_TRY_INNER(result, declaration, expression) \
  auto result = (expression);                             \
  if (!result.ok()) return std::move(result).error();     \
  declaration = std::move(result).value()

#define PROBED_RETURN_IF_ERROR(expression)                            \
  do {                                                                \
    auto probed_status = (expression);                                \
    if (!probed_status.ok()) return std::move(probed_status).error(); \
  } while (false)
