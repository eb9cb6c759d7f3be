#include "tests/lang/trace_instance.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/file.h"

namespace probed::lang::testing {

std::string ReadTracefs(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

Result<TraceInstance> TraceInstance::Create(const std::string& name) {
  const std::string path = "/sys/kernel/tracing/instances/" + name;
  if (mkdir(path.c_str(), 0755) != 0) return ErrnoError(errno, "mkdir " + path);
  return TraceInstance(path);
}

TraceInstance::~TraceInstance() {
  if (!path_.empty()) rmdir(path_.c_str());
}

std::string TraceInstance::ReadEventFile(const std::string& group, const std::string& event,
                                         const char* name) const {
  return ReadTracefs(fmt::format("{}/events/{}/{}/{}", path_, group, event, name));
}

int TraceInstance::WriteEventFile(const std::string& group, const std::string& event,
                                  const char* name, const std::string& bytes) const {
  const std::string path = fmt::format("{}/events/{}/{}/{}", path_, group, event, name);
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return write(fd.get(), bytes.data(), bytes.size()) < 0 ? errno : 0;
}

Status TraceInstance::Enable(const std::string& group, const std::string& event) {
  const int error = WriteEventFile(group, event, "enable", "1");
  return error == 0 ? Status() : ErrnoError(error, "enable " + event);
}

Status TraceInstance::Disable(const std::string& group, const std::string& event) {
  const int error = WriteEventFile(group, event, "enable", "0");
  return error == 0 ? Status() : ErrnoError(error, "disable " + event);
}

// "[  531.023616] event filter parse error: error: MESSAGE", the command and a caret line.
std::string TraceInstance::ErrorLog() const {
  const std::string log = ReadTracefs(path_ + "/error_log");
  const size_t stamp = log.find("] ");
  return stamp == std::string::npos ? log : log.substr(stamp + 2);
}

void TraceInstance::ClearErrorLog() const {
  const UniqueFd emptied(open((path_ + "/error_log").c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
}

std::string TraceInstance::TakeTrace() {
  std::string text = ReadTracefs(path_ + "/trace");
  const UniqueFd emptied(open((path_ + "/trace").c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  // The header ends with the line of bars below the column names.
  constexpr std::string_view kLastHeaderLine =
      "#              | |         |   |||||     |         |\n";
  const size_t header = text.find(kLastHeaderLine);
  return header == std::string::npos ? std::string() : text.substr(header + kLastHeaderLine.size());
}

}  // namespace probed::lang::testing
