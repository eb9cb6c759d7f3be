#include "client/print_definition.h"

#include <fmt/format.h>

#include "engine/lang/definition_set.h"

namespace probed::client {
namespace {

// A word of a shell's command line.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

bool IsKernelUprobe(const v1::Probe& probe) {
  return probe.mechanism() == v1::MECHANISM_KERNEL &&
         lang::Classify(probe.definition()) == lang::LineDestination::kUser;
}

// Go's stand there without being asked to; a number behind r is refused beside the option.
bool IsAskedAtRet(const v1::Probe& probe) {
  const std::string& line = probe.definition();
  return probe.at_ret() && line.find_first_of("0123456789") != 1;
}

std::string SelectionOptions(const v1::Probe& probe) {
  std::string options;
  if (!probe.filter().empty()) options += " --filter " + Quoted(probe.filter());
  if (probe.sampling().every() > 1)
    options += fmt::format(" --sample 1/{}", probe.sampling().every());
  if (probe.sampling().per_second() > 0)
    options += fmt::format(" --rate {}/s", probe.sampling().per_second());
  return options;
}

std::string Options(const v1::Probe& probe) {
  std::string options;
  if (probe.dialect() == v1::DIALECT_KERNEL) options += " --dialect kernel";
  if (IsKernelUprobe(probe)) options += " --mechanism kernel";
  if (probe.no_optimization()) options += " --mechanism breakpoint";
  if (IsAskedAtRet(probe)) options += " --at-ret";
  if (probe.max_active() != 0) options += fmt::format(" --max-active {}", probe.max_active());
  if (probe.string_limit() != 0) options += fmt::format(" --string-limit {}", probe.string_limit());
  if (probe.force()) options += " --force";
  options += SelectionOptions(probe);
  if (!probe.enabled()) options += " --disabled";
  return options;
}

}  // namespace

std::string DefinitionLines(const v1::Probe& probe) {
  std::string lines;
  if (const std::string options = Options(probe); !options.empty())
    lines += fmt::format("# define{}\n", options);
  for (const auto& trigger : probe.triggers())
    lines += fmt::format("# trigger {}/{} {}\n", probe.group(), probe.event(), Quoted(trigger));
  return lines + probe.definition();
}

}  // namespace probed::client
