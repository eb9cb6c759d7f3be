#pragma once
// Data of the verbs that list things: lines on standard output.

#include <cstdio>
#include <string>

namespace probed::client {

inline void PrintLine(const std::string& line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
}

}  // namespace probed::client
