#pragma once
// Options that several verbs share, so that they are spelled and explained the same everywhere.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "client/invocation.h"
#include "client/remote_error.h"
#include "engine/lang/definition_set.h"
#include "probed/v1/probes.pb.h"

namespace probed::client {

// A subcommand with the options that every verb has. `run` is its action.
CLI::App* AddVerb(CLI::App& app, Invocation& invocation, const std::string& name,
                  const std::string& description, std::function<int(Talk&)> run);

// For option->check(), in our own words: CLI11's speak in 300 digits. A number above 0, with or
// without a fraction; a whole one from 1 to `most`; one of `words`.
CLI::Validator Positive();
CLI::Validator Whole(uint64_t most = UINT64_MAX);
CLI::Validator OneOf(std::vector<std::string> words);
// Pids, separated by commas, into a vector of them; the name of that type.
inline constexpr char kPidsType[] = "PID[,PID]";
CLI::Option* AddPidsOption(CLI::App& verb, std::vector<int>& pids, const std::string& description);

void AddDialectOption(CLI::App& verb, lang::Dialect& dialect);

enum class MechanismChoice : uint8_t { kBest, kBreakpoint, kKernel };

// Definition lines of -e and -f, in the order given.
struct DefinitionOptions {
  std::vector<std::string> expressions;
  std::vector<std::string> files;
  lang::Dialect dialect = lang::Dialect::kExtended;
  bool force = false;
  bool require_armed = false;
  bool at_ret = false;
  uint32_t max_active = 0;
  uint32_t string_limit = 0;
  std::string filter;
  MechanismChoice mechanism = MechanismChoice::kBest;
  std::string sample;
  std::string rate;

  bool are_given() const { return !expressions.empty() || !files.empty(); }
  // All lines; blank lines and comments are left out. Errors: a file that cannot be read,
  // NOT_UTF8 (the API carries UTF-8 only).
  Result<std::vector<std::string>> Lines() const;
  // A request without parent and session; paths in it are absolute.
  v1::CreateProbesRequest Request(const std::vector<std::string>& lines) const;
  // A refusal of that request, in terms of `lines`. `program`: the file of the process, if known.
  RemoteError AsTyped(const std::vector<std::string>& lines, const std::string& program,
                      RemoteError refusal) const;
};
void AddDefinitionOptions(CLI::App& verb, DefinitionOptions& options);
// NOTHING_DEFINED.
Error NothingDefined();
// Not for `run`, whose program has mapped nothing yet.
void AddRequireArmedOption(CLI::App& verb, DefinitionOptions& options);

enum class Format : uint8_t { kTrace, kJson };

struct StreamOptions {
  Format format = Format::kTrace;
  std::string output = "-";
  double duration_seconds = 0;  // 0: no limit
  uint64_t count = 0;           // 0: no limit
};
void AddStreamOptions(CLI::App& verb, StreamOptions& options);

// --json for verbs that print a table.
void AddJsonOption(CLI::App& verb, bool& json);

// A target by pid or by its resource name.
struct TargetOption {
  int pid = 0;
  std::string name;
};
void AddTargetOption(CLI::App& verb, TargetOption& target);

}  // namespace probed::client
