#pragma once
// What binutils says about a file, to hold the reader against.

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace probed::elf {

// Standard output, by lines. Fails the test when the command fails.
std::vector<std::string> RunLines(const std::string& command);

std::string Fixture(const std::string& name);  // a path
// The ones of `paths` that are there; at least one must be.
std::vector<std::string> Present(std::vector<std::string> paths);
// Programs and libraries of Debian that the tests read.
std::vector<std::string> SystemFiles();

struct OracleSymbol {
  uint64_t address = 0;
  uint64_t size = 0;
  std::string type;  // FUNC, IFUNC...
  bool defined = true;
  std::string name, version;
  bool default_version = true;
  auto Key() const { return std::tie(name, version, default_version, address, size, type); }
};

// readelf -sW; `table` is "--dyn-syms" or "--syms".
std::vector<OracleSymbol> ReadelfSymbols(const std::string& path, const std::string& table);

}  // namespace probed::elf
