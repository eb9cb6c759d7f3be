#include "engine/return_explanation.h"

#include <fmt/format.h>

#include "base/plural.h"
#include "engine/lang/definition.h"
#include "engine/probe/judge.h"
#include "engine/probe/return_instructions.h"

namespace probed::engine {
namespace {

std::string Refused(const Error& error) {
  return fmt::format("refused: {} ({})", error.message, error.reason);
}

std::string DescribeAtRet(const elf::File& file, const lang::Definition& definition) {
  const auto found = probe::FindReturnInstructions(file, definition);
  if (!found.ok()) return Refused(found.error());
  std::string text = "a breakpoint on " + Plural(found->offsets.size(), "ret instruction");
  if (!found->unseen.empty()) text += "; not counting " + found->unseen;
  return text;
}

std::string Describe(const elf::File& file, const lang::Definition& definition, bool at_ret,
                     probe::Boundaries& boundaries) {
  probe::ProbeOptions options;
  options.at_ret = at_ret;
  const Status judged = probe::JudgePlace(file, definition, options, boundaries);
  if (!judged.ok()) return Refused(judged.error());
  if (probe::StandsAtRet(file, definition, options)) return DescribeAtRet(file, definition);
  return "the function's return address is replaced when it is entered";
}

}  // namespace

ReturnExplanation ExplainReturn(const elf::File& file, FileOffset offset,
                                probe::Boundaries& boundaries) {
  lang::Definition definition;
  definition.kind = lang::ProbeKind::kReturn;
  definition.path = file.name();
  definition.offset = offset.value;
  return {.probe = Describe(file, definition, false, boundaries),
          .at_ret = Describe(file, definition, true, boundaries)};
}

}  // namespace probed::engine
