#include "tests/lang/kernel_uprobes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>

#include "base/file.h"

namespace probed::lang::testing {
namespace {

constexpr const char* kTracefs = "/sys/kernel/tracing";
constexpr std::string_view kCommand = "  Command: ";

std::string ReadText(const std::string& name) {
  std::ifstream in(fmt::format("{}/{}", kTracefs, name));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> SplitAtNewlines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

}  // namespace

Result<KernelUprobes> KernelUprobes::Open() {
  const std::string path = fmt::format("{}/uprobe_events", kTracefs);
  if (access(path.c_str(), W_OK) != 0) {
    mount("nodev", kTracefs, "tracefs", 0, nullptr);
  }
  // Never O_TRUNC, which would delete everybody's probes.
  auto events = OpenFile(path, O_WRONLY | O_APPEND);
  if (!events.ok()) return events.error();
  KernelUprobes uprobes(std::move(*events));
  uprobes.knows_char_ = ReadText("README").find(", char,") != std::string::npos;
  const auto log = ReadLog();
  if (!log.empty()) uprobes.last_stamp_ = log.back().stamp;
  return uprobes;
}

// "[  531.023616] trace_uprobe: error: MESSAGE", "  Command: ...", and a caret line.
std::vector<KernelUprobes::LogEntry> KernelUprobes::ReadLog() {
  std::vector<LogEntry> entries;
  const auto lines = SplitAtNewlines(ReadText("error_log"));
  for (size_t i = 0; i + 2 < lines.size(); ++i) {
    const size_t message = lines[i].find("] trace_uprobe: error: ");
    if (message == std::string::npos || !lines[i + 1].starts_with(kCommand)) continue;
    entries.push_back(
        {lines[i].substr(0, message), lines[i].substr(message + 23),
         lines[i + 1].substr(kCommand.size()),
         static_cast<int>(lines[i + 2].find('^')) - static_cast<int>(kCommand.size())});
    i += 2;
  }
  return entries;
}

KernelAnswer KernelUprobes::Put(const std::string& line, const std::string& command) {
  KernelAnswer answer;
  const std::string bytes = line + "\n";
  if (write(events_.get(), bytes.data(), bytes.size()) < 0) answer.error_number = errno;
  if (answer.error_number == 0) return answer;
  const std::string before = last_stamp_;
  for (const LogEntry& entry : ReadLog()) {
    // Stamps are padded to one width for years, so they compare as text.
    if (entry.stamp <= before) continue;
    last_stamp_ = entry.stamp;
    if (entry.command != command) continue;
    answer.message = entry.message;
    answer.caret = entry.caret;
  }
  return answer;
}

std::vector<std::string> KernelUprobes::List(const std::string& tag) const {
  std::vector<std::string> listed;
  for (const std::string& line : SplitAtNewlines(ReadText("uprobe_events"))) {
    if (line.find(tag) != std::string::npos) listed.push_back(line);
  }
  return listed;
}

std::string KernelUprobes::InItsDialect(std::string arguments) const {
  constexpr std::string_view kChar = ":char";
  if (knows_char_) return arguments;
  for (size_t at; (at = arguments.find(kChar)) != std::string::npos;)
    arguments.replace(at, kChar.size(), ":u8");
  return arguments;
}

bool KernelUprobes::HasEvent(const std::string& group, const std::string& event) const {
  const std::string path = fmt::format("{}/events/{}/{}", kTracefs, group, event);
  return access(path.c_str(), F_OK) == 0;
}

}  // namespace probed::lang::testing
