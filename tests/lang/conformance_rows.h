#pragma once
// The rows of tests/data/conformance: what a real kernel said.

#include <string>
#include <string_view>
#include <vector>

namespace probed::lang::testing {

using Row = std::vector<std::string>;  // columns as they stand, still escaped

// The data rows of tests/data/conformance/<file>, padded to `columns`.
std::vector<Row> ReadRows(const std::string& file, size_t columns);

// \\ \t \n \r \v \f \0 and \xHH.
std::string Unescape(std::string_view text);
std::string Escape(std::string_view bytes);

}  // namespace probed::lang::testing
