// probectl kernel: what the kernel tells of its own probes.

#include <fmt/format.h>

#include <memory>

#include "base/plural.h"
#include "client/json_writer.h"
#include "client/lines.h"
#include "client/verbs/connect.h"
#include "client/verbs/options.h"
#include "client/verbs/verbs.h"

namespace probed::client {
namespace {

struct KernelOptions {
  std::string what;
  bool json = false;
};

// The words of the kernel's own list.
std::string States(const v1::InstalledKprobe& probe) {
  std::string states;
  if (probe.gone()) states += "[GONE]";
  if (probe.disabled()) states += "[DISABLED]";
  if (probe.optimized()) states += "[OPTIMIZED]";
  if (probe.ftrace()) states += "[FTRACE]";
  return states;
}

std::string Text(const v1::InstalledKprobe& probe) {
  std::string line =
      fmt::format("{:016x}  {}  {}", probe.address(), probe.is_return() ? 'r' : 'k', probe.place());
  if (!probe.module().empty()) line += "  " + probe.module();
  if (const std::string states = States(probe); !states.empty()) line += "  " + states;
  return line;
}

std::string Text(const v1::BlacklistedRange& range) {
  return fmt::format("{:016x}-{:016x}  {}", range.begin(), range.end(), range.symbol());
}

std::string Json(const v1::InstalledKprobe& probe) {
  std::string line;
  JsonWriter json(line);
  json.BeginObject();
  json.Key("address").Unsigned(probe.address());
  json.Key("return").Bool(probe.is_return());
  json.Key("place").String(probe.place());
  json.Key("module").String(probe.module());
  json.Key("gone").Bool(probe.gone());
  json.Key("disabled").Bool(probe.disabled());
  json.Key("optimized").Bool(probe.optimized());
  json.Key("ftrace").Bool(probe.ftrace());
  json.EndObject();
  return line;
}

std::string Json(const v1::BlacklistedRange& range) {
  std::string line;
  JsonWriter json(line);
  json.BeginObject();
  json.Key("begin").Unsigned(range.begin());
  json.Key("end").Unsigned(range.end());
  json.Key("symbol").String(range.symbol());
  json.EndObject();
  return line;
}

template <class Items>
void PrintAll(const Items& items, bool json) {
  for (const auto& item : items)
    PrintLine(json ? Json(item) : Text(item));
}

std::string Switch(bool known, bool on) {
  return known ? on ? "on" : "off" : "not known";
}

ExitCode Kernel(const KernelOptions& options, Api& api, Talk& talk) {
  auto kprobes = api.GetKprobes();
  if (!kprobes) return talk.Fail(kprobes.error());
  if (options.what == "blacklist") {
    PrintAll(kprobes->blacklist(), options.json);
    return ExitCode::kOk;
  }
  PrintAll(kprobes->installed(), options.json);
  talk.Note(fmt::format("{}, {} on the blacklist; kprobes are {}, jumps are {}",
                        Plural(kprobes->installed_size(), "kprobe"),
                        Plural(kprobes->blacklist_size(), "place"),
                        Switch(kprobes->has_armed(), kprobes->armed()),
                        Switch(kprobes->has_optimization(), kprobes->optimization())));
  return ExitCode::kOk;
}

}  // namespace

void AddKernel(CLI::App& app, Invocation& invocation) {
  auto [verb, options] = AddDaemonVerb<KernelOptions>(
      app, invocation, "kernel",
      "Show everybody's kprobes in the kernel, or where it allows none.\n"
      "Example: probectl kernel list",
      Kernel, Fallback::kPrivateDaemon);
  verb->add_option("WHAT", options->what, "list: the probes; blacklist: where none can stand")
      ->required()
      ->check(OneOf({"list", "blacklist"}));
  AddJsonOption(*verb, options->json);
}

}  // namespace probed::client
