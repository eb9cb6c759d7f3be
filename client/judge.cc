#include "client/judge.h"

#include <cerrno>
#include <cstring>

#include "client/input.h"
#include "client/json_writer.h"

namespace probed::client {
namespace {

// What one write(2) to uprobe_events refuses before looking at the line: EINVAL, nothing logged.
lang::Verdict Unterminated(const std::string& text) {
  bool has_nul = text.find('\0') != std::string::npos;
  lang::Verdict verdict;
  verdict.error_number = EINVAL;
  verdict.code = has_nul ? "NUL_BYTE" : "LINE_TOO_LONG";
  verdict.command = text.substr(0, text.find('\n'));
  verdict.explanation = has_nul
                            ? "a NUL byte ends the line early; definitions are text"
                            : "the line is longer than the 4094 bytes that a definition may have";
  return verdict;
}

const char* ErrnoName(int error_number) {
  const char* name = ::strerrorname_np(error_number);
  return name != nullptr ? name : "UNKNOWN";
}

}  // namespace

void AppendVerdict(size_t number, const lang::Verdict& verdict, std::string& out) {
  JsonWriter json(out);
  json.BeginObject();
  json.Key("line").Unsigned(number);
  json.Key("ok").Bool(verdict.ok);
  json.Key("errno").Signed(verdict.error_number);
  json.Key("errno_name");
  verdict.error_number == 0 ? json.Null() : json.String(ErrnoName(verdict.error_number));
  json.Key("message");
  verdict.message ? json.String(*verdict.message) : json.Null();
  json.Key("caret");
  verdict.caret ? json.Signed(*verdict.caret) : json.Null();
  json.Key("command").String(verdict.command);
  json.Key("reason").String(verdict.code);
  json.Key("explanation").String(verdict.explanation);
  json.Key("readback").BeginArray();
  for (const auto& line : verdict.readback)
    json.String(line);
  json.EndArray().EndObject();
  out += '\n';
}

bool Judge::JudgeAll(std::string_view bytes, lang::FileNamespace& files, std::string& out) {
  bool all_ok = true;
  size_t number = 0;
  // A write(2) each: one that is cut off takes no other with it.
  for (std::string_view raw : RawLines(bytes)) {
    lang::InputLine line = lang::SplitLines(raw).front();
    lang::Verdict verdict =
        line.too_long ? Unterminated(line.text) : set_.Apply(line.text, files).verdict;
    AppendVerdict(++number, verdict, out);
    all_ok = all_ok && verdict.ok;
  }
  return all_ok;
}

}  // namespace probed::client
