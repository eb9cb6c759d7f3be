#pragma once
// A line or filter that the kernel has refused, in its words where it has some, in ours where it
// says nothing.

#include <string>

#include "base/error.h"
#include "engine/kernel/definition_line.h"
#include "engine/kernel/tracefs.h"
#include "engine/lang/definition_set.h"

namespace probed::kernel {

struct Refusal {
  size_t line = 0;  // as the caller counts
  Error error;
  lang::Verdict verdict;  // empty where it is not the line's fault
  bool in_filter = false;
};

// `failed`: what writing the line came to.
Refusal RefusedDefinition(const Tracefs& tracefs, DefinitionLine line, const Owner& owner,
                          const Error& failed);
// Says so where the line names an argument, which this kernel cannot look up.
void ExplainWithoutBtf(Refusal& refusal);
// A name that cannot be one; the kernel was not asked.
Refusal RefusedName(const lang::Refusal& refusal, const std::vector<std::string>& tokens);
Error RefusedEnable(const std::string& definition, const Error& failed);
// As of a filter; what is wrong with one in a trigger the kernel says nowhere.
Refusal RefusedTrigger(const Tracefs& tracefs, const std::string& directory,
                       const std::string& trigger, const Error& failed);
// `directory`: of the instance, whose own log has what is wrong with filters and triggers.
Refusal RefusedFilter(const Tracefs& tracefs, const std::string& directory,
                      const std::string& filter, const Error& failed);

}  // namespace probed::kernel
