#include "tests/lang/conformance_rows.h"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <stdexcept>

namespace probed::lang::testing {
namespace {

Row SplitColumns(const std::string& line, size_t columns) {
  Row row;
  size_t start = 0;
  while (true) {
    const size_t tab = line.find('\t', start);
    row.push_back(line.substr(start, tab - start));
    if (tab == std::string::npos) break;
    start = tab + 1;
  }
  row.resize(columns);
  return row;
}

}  // namespace

std::vector<Row> ReadRows(const std::string& file, size_t columns) {
  std::ifstream in("tests/data/conformance/" + file);
  if (!in) throw std::runtime_error("run from the top of the tree: no " + file);
  std::vector<Row> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#' || line.starts_with("id\t")) continue;
    rows.push_back(SplitColumns(line, columns));
  }
  return rows;
}

std::string Unescape(std::string_view text) {
  static const std::map<char, char> kSimple = {{'\\', '\\'}, {'t', '\t'}, {'n', '\n'}, {'r', '\r'},
                                               {'v', '\v'},  {'f', '\f'}, {'0', '\0'}};
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
    } else if (text[i + 1] == 'x') {
      out += static_cast<char>(std::stoi(std::string(text.substr(i + 2, 2)), nullptr, 16));
      i += 3;
    } else {
      out += kSimple.at(text[++i]);
    }
  }
  return out;
}

std::string Escape(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", byte);
    }
  }
  return out;
}

}  // namespace probed::lang::testing
