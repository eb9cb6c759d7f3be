#pragma once
// Deletion lines, `-:[GROUP/]EVENT [PLACE [ARGS]]`, and what they match. Pure.

#include <optional>
#include <string>
#include <vector>

#include "engine/lang/judge.h"

namespace probed::lang {

struct Deletion {
  std::optional<std::string> group;  // absent: every group
  std::string event;                 // empty: every event
  // Place, then leading arguments, spelled as they are read back; may be empty.
  std::vector<std::string> head;
};

Judged<Deletion> ParseDeletion(const std::vector<std::string>& tokens);

bool Matches(const Deletion& deletion, const JudgedLine& line);

}  // namespace probed::lang
