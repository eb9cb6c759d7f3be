#include "client/verbs/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <climits>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>

#include "client/input.h"
#include "client/json_writer.h"
#include "client/meant_line.h"
#include "client/typed_places.h"

namespace probed::client {
namespace {

const std::map<std::string, Color> kColors = {
    {"auto", Color::kAuto}, {"always", Color::kAlways}, {"never", Color::kNever}};
const std::map<std::string, lang::Dialect> kDialects = {{"kernel", lang::Dialect::kKernel},
                                                        {"extended", lang::Dialect::kExtended}};
const std::map<std::string, MechanismChoice> kMechanisms = {
    {"best", MechanismChoice::kBest},
    {"breakpoint", MechanismChoice::kBreakpoint},
    {"kernel", MechanismChoice::kKernel}};
const std::map<std::string, Format> kFormats = {{"trace", Format::kTrace}, {"json", Format::kJson}};

template <class Enum>
std::string WordsOf(const std::map<std::string, Enum>& words) {
  std::string list;
  for (const auto& [word, value] : words)
    list += (list.empty() ? "" : ", ") + word;
  return list;
}

// One word of `words` for `value`. CLI11's own transformer clutters --help with numbers.
template <class Enum>
CLI::Option* AddChoice(CLI::App& verb, const std::string& option, Enum& value,
                       const std::map<std::string, Enum>& words, const std::string& description) {
  return verb
      .add_option_function<std::string>(
          option,
          [&value, &words, option](const std::string& word) {
            auto found = words.find(word);
            if (found == words.end()) {
              throw CLI::ValidationError(option, word + " is not one of " + WordsOf(words));
            }
            value = found->second;
          },
          description)
      ->type_name("WORD");
}

void AddConnectionOptions(CLI::App& verb, Invocation& invocation) {
  constexpr char kGroup[] = "Connection";
  EndpointOptions& endpoint = invocation.endpoint;
  verb.add_option("--address", endpoint.address,
                  "Daemon: unix:///path, tcp://host:port or private; also PROBED_ADDRESS")
      ->type_name("ADDR")
      ->group(kGroup);
  verb.add_option("--tls-ca", endpoint.tls.ca,
                  "PEM file that the daemon's certificate must chain to")
      ->envname("PROBED_TLS_CA")
      ->type_name("FILE")
      ->group(kGroup);
  verb.add_option("--tls-cert", endpoint.tls.certificate, "PEM file of our certificate")
      ->envname("PROBED_TLS_CERT")
      ->type_name("FILE")
      ->group(kGroup);
  verb.add_option("--tls-key", endpoint.tls.key, "PEM file of our key")
      ->envname("PROBED_TLS_KEY")
      ->type_name("FILE")
      ->group(kGroup);
  verb.add_option("--timeout", invocation.timeout_seconds,
                  "Give up a call to the daemon after so many seconds (30)")
      ->check(Positive())
      ->type_name("SECONDS")
      ->group(kGroup);
}

void AddTalkOptions(CLI::App& verb, Invocation& invocation) {
  constexpr char kGroup[] = "Talk";
  verb.add_flag("-q,--quiet", invocation.quiet, "Say nothing but errors and losses")->group(kGroup);
  AddChoice(verb, "--color", invocation.color, kColors, "auto, always or never; also NO_COLOR")
      ->group(kGroup);
}

Error NotUtf8(std::string_view what, const std::string& line) {
  std::string shown;
  AppendJsonString(line, shown);
  return {.code = ErrorCode::kInvalidArgument,
          .reason = "NOT_UTF8",
          .message = fmt::format("the {} {} is not UTF-8", what, shown),
          .hint = "another name: the API carries UTF-8 only ('check' takes any bytes)",
          .metadata = {}};
}

void AppendLines(std::string_view bytes, std::vector<std::string>& lines) {
  for (std::string_view raw : RawLines(bytes)) {
    if (raw.ends_with('\n')) raw.remove_suffix(1);
    if (lang::Classify(raw) != lang::LineDestination::kEmpty) lines.emplace_back(raw);
  }
}

// The number that an option means: N, or with both, PREFIX N SUFFIX.
std::optional<uint32_t> NumberIn(std::string_view text, std::string_view prefix,
                                 std::string_view suffix) {
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  if (text.ends_with(suffix)) text.remove_suffix(suffix.size());
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number == 0) return std::nullopt;
  return number;
}

CLI::Validator NumberWith(const std::string& prefix, const std::string& suffix) {
  return CLI::Validator(
      [=](std::string& text) {
        if (NumberIn(text, prefix, suffix)) return std::string();
        return fmt::format("{} is not {}N{} with N from 1 to 4294967295", text, prefix, suffix);
      },
      "");
}

// Also as pidof(1) prints several, with blanks between them.
void AppendPids(const std::string& list, std::vector<int>& pids) {
  const auto refuse = [](const std::string& why) { throw CLI::ValidationError("--pid", why); };
  std::istringstream parts(list + ",");
  for (std::string part; std::getline(parts, part, ',');) {
    std::istringstream words(part);
    std::string pid;
    if (!(words >> pid)) refuse(fmt::format("a pid is missing in \"{}\"", list));
    do {
      const auto why = Whole(INT_MAX)(pid);
      if (!why.empty() && std::isalpha(static_cast<unsigned char>(pid.front())) != 0) {
        refuse(fmt::format("{}; 'pidof {}' tells those of a name", why, pid));
      }
      if (!why.empty()) refuse(why);
      pids.push_back(std::stoi(pid));
    } while (words >> pid);
  }
}

}  // namespace

CLI::App* AddVerb(CLI::App& app, Invocation& invocation, const std::string& name,
                  const std::string& description, std::function<int(Talk&)> run) {
  CLI::App* verb = app.add_subcommand(name, description);
  verb->callback([&invocation, run = std::move(run)] { invocation.action = run; });
  AddConnectionOptions(*verb, invocation);
  AddTalkOptions(*verb, invocation);
  return verb;
}

CLI::Validator Positive() {
  return CLI::Validator(
      [](std::string& text) {
        double number = 0;
        const bool good =
            CLI::detail::lexical_cast(text, number) && number > 0 && std::isfinite(number);
        return good ? std::string() : text + " is not a positive number";
      },
      "");
}

CLI::Validator Whole(uint64_t most) {
  return CLI::Validator(
      [most](std::string& text) {
        uint64_t number = 0;
        const char* end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, number);
        const bool good = error == std::errc() && rest == end && number > 0 && number <= most;
        return good ? std::string() : fmt::format("{} is not a number from 1 to {}", text, most);
      },
      "");
}

CLI::Validator OneOf(std::vector<std::string> words) {
  return CLI::Validator(
      [words = std::move(words)](std::string& text) {
        if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
        return fmt::format("{} is not one of {}", text, fmt::join(words, ", "));
      },
      "");
}

CLI::Option* AddPidsOption(CLI::App& verb, std::vector<int>& pids, const std::string& description) {
  const auto take = [&pids](const std::vector<std::string>& lists) {
    for (const std::string& list : lists)
      AppendPids(list, pids);
  };
  return verb.add_option_function<std::vector<std::string>>("-p,--pid", take, description)
      ->allow_extra_args(false)
      ->type_name(kPidsType);
}

void AddDialectOption(CLI::App& verb, lang::Dialect& dialect) {
  AddChoice(verb, "--dialect", dialect, kDialects,
            "kernel (exactly what uprobe_events takes) or extended (the default)");
}

void AddDefinitionOptions(CLI::App& verb, DefinitionOptions& options) {
  verb.add_option("-e,--definition", options.expressions,
                  "A definition line, e.g. 'r:bash/line /usr/bin/bash:readline +0($retval):string'")
      ->allow_extra_args(false)
      ->type_name("LINE");
  verb.add_option("-f,--file", options.files, "Definition lines from a file; - is standard input")
      ->allow_extra_args(false)
      ->type_name("FILE");
  AddDialectOption(verb, options.dialect);
  verb.add_flag("--force", options.force, "Allow an offset that is not an instruction boundary");
  AddChoice(verb, "--mechanism", options.mechanism, kMechanisms,
            "best (the default: a jump where that is safe), breakpoint (never a jump), or kernel "
            "(kernel uprobes, which every process hits)");
  verb.add_flag("--at-ret", options.at_ret,
                "Return probes leave return addresses alone and stand on the ret instructions of "
                "their functions");
  verb.add_option(
          "--max-active", options.max_active,
          "Return probe instances at once, where a definition says nothing; not with --at-ret")
      ->check(Whole(UINT32_MAX))
      ->type_name("N");
  verb.add_option("--string-limit", options.string_limit,
                  "Longest string in bytes (4096, at most 1048576)")
      ->check(Whole(1u << 20))
      ->type_name("BYTES");
  verb.add_option("--filter", options.filter,
                  "Record only hits that pass, e.g. 'size > 4096 && COMM ~ \"redis*\"'; holds for "
                  "every definition")
      ->type_name("EXPR");
  verb.add_option("--sample", options.sample,
                  "Of the hits that pass the filter record one in N, counting the rest")
      ->check(NumberWith("1/", ""))
      ->type_name("1/N");
  verb.add_option("--rate", options.rate,
                  "Record no more than N hits in each second, counting the rest")
      ->check(NumberWith("", "/s"))
      ->type_name("N/s");
}

Error NothingDefined() {
  return {.code = ErrorCode::kInvalidArgument,
          .reason = "NOTHING_DEFINED",
          .message = "there is no definition in what was given",
          .hint = "-e 'p:my/open libc.so.6:open64', or a file with such lines",
          .metadata = {}};
}

void AddRequireArmedOption(CLI::App& verb, DefinitionOptions& options) {
  verb.add_flag("--require-armed", options.require_armed,
                "Refuse a definition whose file is not mapped instead of letting it wait");
}

Result<std::vector<std::string>> DefinitionOptions::Lines() const {
  std::vector<std::string> lines;
  for (const auto& expression : expressions)
    AppendLines(expression, lines);
  for (const auto& file : files) {
    PROBED_TRY(std::string bytes, ReadInput(file));
    AppendLines(bytes, lines);
  }
  for (const auto& line : lines) {
    if (!IsUtf8(line)) return NotUtf8("definition", line);
  }
  if (!IsUtf8(filter)) return NotUtf8("filter", filter);
  return lines;
}

v1::CreateProbesRequest DefinitionOptions::Request(const std::vector<std::string>& lines) const {
  v1::CreateProbesRequest request;
  for (const auto& line : lines)
    request.add_definitions(AbsoluteLine(line, dialect));
  request.set_dialect(dialect == lang::Dialect::kKernel ? v1::DIALECT_KERNEL
                                                        : v1::DIALECT_EXTENDED);
  request.set_force(force);
  request.set_require_armed(require_armed);
  request.set_at_ret(at_ret);
  request.set_max_active(max_active);
  request.set_string_limit(string_limit);
  request.set_filter(filter);
  if (mechanism == MechanismChoice::kKernel) request.set_mechanism(v1::MECHANISM_KERNEL);
  request.set_no_optimization(mechanism == MechanismChoice::kBreakpoint);
  if (auto every = NumberIn(sample, "1/", "")) request.mutable_sampling()->set_every(*every);
  if (auto limit = NumberIn(rate, "", "/s")) request.mutable_sampling()->set_per_second(*limit);
  return request;
}

RemoteError DefinitionOptions::AsTyped(const std::vector<std::string>& lines,
                                       const std::string& program, RemoteError refusal) const {
  ShowAsTyped(lines, dialect, refusal);
  SuggestMeantLine(lines, dialect, program, refusal);
  return refusal;
}

void AddStreamOptions(CLI::App& verb, StreamOptions& options) {
  AddChoice(verb, "--format", options.format, kFormats,
            "trace (ftrace's lines, the default) or json (one object a line)");
  verb.add_option("-o,--output", options.output, "Write events there; - is standard output")
      ->type_name("FILE");
  verb.add_option("--duration", options.duration_seconds, "Stop after so many seconds")
      ->check(Positive())
      ->type_name("SECONDS");
  verb.add_option("--count", options.count, "Stop after so many events")
      ->check(Whole())
      ->type_name("N");
}

void AddJsonOption(CLI::App& verb, bool& json) {
  verb.add_flag("--json", json, "One JSON object a line");
}

void AddTargetOption(CLI::App& verb, TargetOption& target) {
  auto* pid = verb.add_option("-p,--pid", target.pid, "Process id of an attached target")
                  ->check(Whole(INT_MAX))
                  ->type_name("PID");
  verb.add_option("--target", target.name, "Resource name: targets/PID-START")
      ->excludes(pid)
      ->type_name("NAME");
}

}  // namespace probed::client
