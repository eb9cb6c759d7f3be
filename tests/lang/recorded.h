#pragma once
// From a line to what it prints, for tests.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/lang/definition_set.h"
#include "engine/lang/fetch_program.h"
#include "engine/lang/payload.h"
#include "engine/lang/print.h"
#include "tests/lang/fake_context.h"
#include "tests/lang/fake_files.h"

namespace probed::lang::testing {

inline FakeFiles OneFile() {
  FakeFiles files;
  files.AddFile("/bin/x", 1);
  files.AddFile("/bin/y", 2);
  files.AddFile("libc.so.6", 3);
  files.AddFile("/opt/a b#c/voil\xc3\xa0", 4);
  files.AddFile("/opt/a\\040b", 5);
  files.AddDirectory(".");
  files.AddProcess(1234);
  files.AddSymbol("malloc", 0x9a0);
  files.AddSymbol("ns::f", 0x30);
  return files;
}

// A definition of "/bin/x:0x10" and what it records.
class Recorded {
 public:
  Recorded(Dialect dialect, const std::string& kind, const std::string& arguments) : set_(dialect) {
    FakeFiles files = OneFile();
    applied_ = set_.Apply(kind + ":g/a /bin/x:0x10 " + arguments, files);
  }

  const Verdict& verdict() const { return applied_.verdict; }
  const Definition& definition() const { return *set_.Find(*applied_.added); }

  // "v=1 w=2", or what went wrong.
  std::string Text(FakeContext& context, FetchLimits limits = {}) {
    if (!verdict().ok) return verdict().code;
    std::vector<std::byte> payload;
    if (Fetch(*definition().program, limits, context, payload) == FetchOutcome::kDropped) {
      return "dropped";
    }
    const auto values = DecodePayload(definition().schema, payload);
    if (!values.ok()) return values.error().ToString();
    std::string text;
    AppendArguments(definition().schema, *values, text);
    return text.substr(text.empty() ? 0 : 1);
  }

  std::vector<Value> Values(FakeContext& context, FetchLimits limits = {}) {
    std::vector<std::byte> payload;
    EXPECT_EQ(Fetch(*definition().program, limits, context, payload), FetchOutcome::kRecorded);
    return DecodePayload(definition().schema, payload).value();
  }

 private:
  DefinitionSet set_;
  DefinitionSet::Applied applied_;
};

}  // namespace probed::lang::testing
