#pragma once
// `probectl check`: judges definition lines in order, as if every accepted one had been defined,
// and reports each as one JSON object.

#include <string>
#include <string_view>
#include <utility>

#include "engine/lang/definition_set.h"

namespace probed::client {

class Judge {
 public:
  // `foreign_events`: as in lang::DefinitionSet.
  explicit Judge(lang::Dialect dialect, lang::DefinitionSet::ForeignEvents foreign_events = {})
      : set_(dialect, std::move(foreign_events)) {}

  // Appends one line of JSON per input line to `out`; true when all were accepted.
  bool JudgeAll(std::string_view bytes, lang::FileNamespace& files, std::string& out);

 private:
  lang::DefinitionSet set_;
};

// One verdict as a line of JSON with its newline. `number` is 1-based.
void AppendVerdict(size_t number, const lang::Verdict& verdict, std::string& out);

}  // namespace probed::client
