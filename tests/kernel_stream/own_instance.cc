#include "tests/kernel_stream/own_instance.h"

#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

#include "tests/kernel_control/own_tracefs.h"

namespace probed::kernel::testing {

std::optional<OwnInstance> OwnInstance::Create(const std::string& name) {
  auto tracefs = RealTracefs();
  if (!tracefs) return std::nullopt;
  const std::string directory = "instances/" + name + "-" + std::to_string(::getpid());
  if (::mkdir(tracefs->Path(directory).c_str(), 0700) != 0) return std::nullopt;
  return OwnInstance(*std::move(tracefs), directory);
}

OwnInstance::OwnInstance(OwnInstance&& other) noexcept
    : tracefs_(std::move(other.tracefs_)),
      directory_(std::exchange(other.directory_, {})),
      events_(std::move(other.events_)) {}

OwnInstance::~OwnInstance() {
  if (directory_.empty()) return;
  Write("events/enable", "0");
  ::rmdir(directory().c_str());
  for (const std::string& event : events_)
    (void)tracefs_.Write("uprobe_events", "-:" + event + "\n");
}

std::string OwnInstance::Format(const std::string& group, const std::string& event) const {
  return Read("events/" + group + "/" + event + "/format");
}

bool OwnInstance::Write(const std::string& file, const std::string& text) const {
  return tracefs_.Write(directory_ + "/" + file, text).ok();
}

std::string OwnInstance::Read(const std::string& file) const {
  return tracefs_.Read(directory_ + "/" + file).value_or("");
}

bool OwnInstance::Define(const std::string& line, const std::string& event) {
  if (!tracefs_.Write("uprobe_events", line + "\n").ok()) return false;
  events_.push_back(event);
  return true;
}

uint64_t OwnInstance::Statistic(const std::string& name) const {
  uint64_t sum = 0;
  for (const std::string& cpu : tracefs_.Directories(directory_ + "/per_cpu")) {
    std::istringstream lines(Read("per_cpu/" + cpu + "/stats"));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(name + ": ")) sum += std::stoull(line.substr(name.size() + 2));
    }
  }
  return sum;
}

std::vector<std::string> OwnInstance::Trace() const {
  std::vector<std::string> lines;
  std::istringstream text(Read("trace"));
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with('#')) lines.push_back(line);
  }
  return lines;
}

}  // namespace probed::kernel::testing
