// probectl check: judge definition lines without touching anything, and without a daemon.

#include <memory>

#include "client/input.h"
#include "client/judge.h"
#include "client/kernel_events.h"
#include "client/local_files.h"
#include "client/output.h"
#include "client/verbs/options.h"
#include "client/verbs/verbs.h"

namespace probed::client {
namespace {

struct CheckOptions {
  std::string file = "-";
  std::string output = "-";
  lang::Dialect dialect = lang::Dialect::kExtended;
};

int Check(const CheckOptions& options, Talk& talk) {
  auto bytes = ReadInput(options.file);
  if (!bytes.ok()) return static_cast<int>(talk.Fail(bytes.error()));
  auto output = Output::Open(options.output);
  if (!output.ok()) return static_cast<int>(talk.Fail(output.error()));
  LocalFiles files(options.dialect);
  bool all_ok = Judge(options.dialect, IsKernelEvent).JudgeAll(*bytes, files, output->buffer());
  output->Flush();
  return static_cast<int>(all_ok ? ExitCode::kOk : ExitCode::kFailure);
}

}  // namespace

void AddCheck(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* verb = AddVerb(app, invocation, "check",
                           "Judge definition lines without touching anything: one JSON object each",
                           [options](Talk& talk) { return Check(*options, talk); });
  verb->add_option("FILE", options->file, "Definition lines; - (the default) is standard input");
  verb->add_option("-o,--output", options->output, "Write there; - is standard output")
      ->type_name("FILE");
  AddDialectOption(*verb, options->dialect);
}

}  // namespace probed::client
