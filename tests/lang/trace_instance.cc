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

Status TraceInstance::WriteEnable(const std::string& group, const std::string& event,
                                  const char* value) {
  const std::string path = fmt::format("{}/events/{}/{}/enable", path_, group, event);
  PROBED_TRY(const UniqueFd fd, OpenFile(path, O_WRONLY));
  if (write(fd.get(), value, 1) != 1) return ErrnoError(errno, "write " + path);
  return {};
}

Status TraceInstance::Enable(const std::string& group, const std::string& event) {
  return WriteEnable(group, event, "1");
}

Status TraceInstance::Disable(const std::string& group, const std::string& event) {
  return WriteEnable(group, event, "0");
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

std::string TraceInstance::Format(const std::string& group, const std::string& event) const {
  return ReadTracefs(fmt::format("{}/events/{}/{}/format", path_, group, event));
}

}  // namespace probed::lang::testing
