#pragma once
// Where this program's file has an address.

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace probed::lang::testing {

struct OwnLocation {
  std::string path;
  uint64_t offset = 0;
};

inline OwnLocation LocationOf(uint64_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long start, end, offset;
    int path = 0;
    if (sscanf(line.c_str(), "%lx-%lx %*s %lx %*s %*s %n", &start, &end, &offset, &path) < 3) {
      continue;
    }
    if (address >= start && address < end) return {line.substr(path), address - start + offset};
  }
  return {};
}

}  // namespace probed::lang::testing
