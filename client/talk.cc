#include "client/talk.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "client/printable.h"

namespace probed::client {
namespace {

constexpr size_t kMostVerdicts = 10;
constexpr std::string_view kEraseLine = "\r\033[K";

bool WantColor(Color color) {
  if (color != Color::kAuto) return color == Color::kAlways;
  const char* no_color = std::getenv("NO_COLOR");
  return ::isatty(STDERR_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
}

void WriteRaw(std::string_view text) {
  // Nothing sensible can be done when standard error is gone.
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

// Suggestions have a line of their own.
bool IsSuggestion(std::string_view key) {
  return key == "suggestions" || key == "choices";
}

std::string Why(const Error& error) {
  std::string facts;
  for (const auto& [key, value] : error.metadata) {
    if (IsSuggestion(key) || value.empty()) continue;
    facts += fmt::format("{}{}={}", facts.empty() ? "" : ", ", key, value);
  }
  if (facts.empty()) return error.reason;
  return fmt::format("{} ({})", error.reason, facts);
}

std::string Suggestions(const Error& error) {
  for (const auto& [key, value] : error.metadata) {
    if (IsSuggestion(key) && !value.empty()) return value;
  }
  return {};
}

}  // namespace

std::string DescribeError(const Error& error) {
  std::string text = error.message.empty() ? error.reason : error.message;
  text += '\n';
  if (!error.reason.empty()) text += fmt::format("  why: {}\n", Why(error));
  auto names = Suggestions(error);
  const bool told = !names.empty() && error.hint.find("did you mean") != std::string::npos;
  if (!error.hint.empty() && !told) text += fmt::format("  try: {}\n", error.hint);
  if (!names.empty()) text += fmt::format("  did you mean: {}\n", names);
  return text;
}

std::string DescribeVerdict(const v1::LineVerdict& verdict) {
  std::string what = verdict.has_message() ? verdict.message() : verdict.explanation();
  std::string part = verdict.in_filter() ? "filter" : "definition";
  if (!verdict.in_filter() || verdict.line() > 0) part += fmt::format(" {}", verdict.line() + 1);
  std::string text = fmt::format("{}: {}\n", part, what);
  text += fmt::format("  Command: {}\n", verdict.command());
  if (verdict.has_caret()) text += fmt::format("{:{}}^\n", "", 11 + verdict.caret());
  if (verdict.has_message() && !verdict.explanation().empty() && verdict.explanation() != what) {
    text += fmt::format("  {}\n", verdict.explanation());
  }
  text += fmt::format("  why: {} (errno={})\n", verdict.reason(), verdict.error_number());
  return text;
}

Talk::Talk(Color color, bool quiet)
    : color_(WantColor(color)), quiet_(quiet), is_terminal_(::isatty(STDERR_FILENO) == 1) {}

std::string Talk::Paint(std::string_view code, std::string_view text) const {
  return color_ ? fmt::format("\033[{}m{}\033[0m", code, text) : std::string(text);
}

// Names and paths of other people's processes are in what we say.
std::string Talk::Shown(std::string_view text) const {
  std::string shown(text);
  if (is_terminal_) MakePrintable(shown, 0, Newlines::kKeep);
  return shown;
}

void Talk::Write(std::string text) {
  std::lock_guard lock(mutex_);
  if (status_shown_) text.insert(0, kEraseLine);
  status_shown_ = false;
  WriteRaw(text);
}

void Talk::Note(std::string_view text) {
  if (!quiet_) Write(fmt::format("probectl: {}\n", Shown(text)));
}

void Talk::Warn(std::string_view text) {
  Write(fmt::format("probectl: {} {}\n", Paint("33", "warning:"), Shown(text)));
}

ExitCode Talk::Fail(const Error& error) {
  Write(fmt::format("probectl: {} {}", Paint("31", "error:"), Shown(DescribeError(error))));
  return ExitCodeFor(error.code);
}

ExitCode Talk::Fail(const RemoteError& remote) {
  if (remote.verdicts.empty()) return Fail(remote.error);
  size_t shown = 0;
  std::string all;
  for (const auto& verdict : remote.verdicts) {
    if (shown++ == kMostVerdicts) break;
    std::string text = DescribeVerdict(verdict);
    all += text;
    Write(fmt::format("probectl: {} {}", Paint("31", "error:"), Shown(text)));
  }
  if (remote.verdicts.size() > kMostVerdicts) {
    Warn(fmt::format("{} more definitions were refused", remote.verdicts.size() - kMostVerdicts));
  }
  // The explanation of a verdict often is the hint already.
  const std::string& hint = remote.error.hint;
  if (!hint.empty() && all.find(hint) == std::string::npos) Write("  try: " + Shown(hint) + "\n");
  auto names = Suggestions(remote.error);
  if (!names.empty() && all.find("did you mean") == std::string::npos) {
    Write("  did you mean: " + Shown(names) + "\n");
  }
  return ExitCodeFor(remote.error.code);
}

void Talk::SetStatus(std::string_view text) {
  if (quiet_ || !is_terminal_) return;
  std::lock_guard lock(mutex_);
  WriteRaw(fmt::format("{}{}", kEraseLine, text));
  status_shown_ = true;
}

void Talk::ClearStatus() {
  std::lock_guard lock(mutex_);
  if (status_shown_) WriteRaw(kEraseLine);
  status_shown_ = false;
}

}  // namespace probed::client
