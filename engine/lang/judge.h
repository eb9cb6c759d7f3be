#pragma once
// One definition line, judged by itself: everything but its relation to other definitions. Pure.

#include <string>
#include <vector>

#include "engine/lang/argument.h"
#include "engine/lang/definition.h"
#include "engine/lang/definition_set.h"
#include "engine/lang/refusal.h"

namespace probed::lang {

struct JudgedLine {
  Definition definition;
  std::vector<std::string> argument_texts;  // as typed, without names
};

Judged<JudgedLine> JudgeDefinition(const std::vector<std::string>& tokens, Dialect dialect,
                                   FileNamespace& files);

// What to answer when `refusal` ends the line.
Verdict MakeVerdict(const Refusal& refusal, const std::vector<std::string>& tokens);

}  // namespace probed::lang
