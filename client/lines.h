#pragma once
// Data of the verbs that list things: lines on standard output.

#include <unistd.h>

#include <cstdio>
#include <string>

#include "client/printable.h"

namespace probed::client {

inline void PrintLine(std::string line) {
  static const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  if (is_terminal) MakePrintable(line, 0, Newlines::kKeep);
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
}

}  // namespace probed::client
