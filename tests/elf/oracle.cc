#include "tests/elf/oracle.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>

namespace probed::elf {
namespace {

// "Num: Value Size Type Bind Vis Ndx Name[@[@]VERSION] [(n)]"
std::optional<OracleSymbol> ParseSymbolLine(const std::string& line) {
  std::istringstream fields(line);
  std::string number, value, size, type, bind, visibility, section, name;
  fields >> number >> value >> size >> type >> bind >> visibility >> section >> name;
  if (fields.fail() || number.back() != ':' || number == "Num:") return std::nullopt;
  OracleSymbol symbol;
  symbol.address = std::stoull(value, nullptr, 16);
  symbol.size = std::stoull(size, nullptr, 0);
  symbol.type = type;
  symbol.defined = section != "UND";
  size_t at = name.find('@');
  symbol.name = name.substr(0, at);
  if (at != std::string::npos) {
    symbol.default_version = name.compare(at, 2, "@@") == 0;
    symbol.version = name.substr(name.find_first_not_of('@', at));
  }
  return symbol;
}

}  // namespace

std::vector<std::string> RunLines(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr) << command;
  std::vector<std::string> lines;
  char* line = nullptr;
  size_t capacity = 0;
  for (ssize_t length; pipe != nullptr && (length = ::getline(&line, &capacity, pipe)) >= 0;) {
    while (length > 0 && line[length - 1] == '\n')
      --length;
    lines.emplace_back(line, static_cast<size_t>(length));
  }
  ::free(line);
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return lines;
}

std::string Fixture(const std::string& name) {
  return std::string(ELF_FIXTURES) + "/elf_" + name;
}

std::vector<std::string> Present(std::vector<std::string> paths) {
  std::erase_if(paths, [](const std::string& path) { return ::access(path.c_str(), R_OK) != 0; });
  EXPECT_FALSE(paths.empty());
  return paths;
}

std::vector<std::string> SystemFiles() {
  const std::string libraries = "/usr/lib/x86_64-linux-gnu/";
  return Present({"/usr/bin/bash", "/usr/bin/python3.11", "/usr/bin/redis-check-rdb",
                  libraries + "libc.so.6", libraries + "libm.so.6", libraries + "libstdc++.so.6",
                  libraries + "libcrypto.so.3", libraries + "libsqlite3.so.0"});
}

std::vector<OracleSymbol> ReadelfSymbols(const std::string& path, const std::string& table) {
  std::vector<OracleSymbol> symbols;
  for (const std::string& line :
       RunLines(fmt::format("readelf -W {} {} 2>/dev/null", table, path))) {
    if (auto symbol = ParseSymbolLine(line)) symbols.push_back(*std::move(symbol));
  }
  return symbols;
}

}  // namespace probed::elf
