#include "tests/kernel_control/own_tracefs.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "engine/kernel/dynamic_events.h"

namespace probed::kernel::testing {

std::optional<Tracefs> RealTracefs() {
  auto tracefs = Tracefs::Find();
  if (!tracefs.ok() || access(tracefs->Path("instances").c_str(), W_OK) != 0) return std::nullopt;
  return *std::move(tracefs);
}

std::vector<std::string> DefinitionsWith(const Tracefs& tracefs, const std::string& word) {
  std::vector<std::string> found;
  for (const DynamicEvent& event : ListDynamicEvents(tracefs)) {
    std::string name = event.group + "/" + event.event;
    if (name.find(word) != std::string::npos) found.push_back(std::move(name));
  }
  return found;
}

std::vector<std::string> InstancesWith(const Tracefs& tracefs, const std::string& word) {
  std::vector<std::string> found;
  for (std::string& name : tracefs.Directories("instances"))
    if (name.starts_with(word)) found.push_back(std::move(name));
  return found;
}

FakeTracefs::FakeTracefs() {
  std::string name = std::filesystem::temp_directory_path() / "fake tracefs-XXXXXX";
  root_ = mkdtemp(name.data());
}

FakeTracefs::~FakeTracefs() {
  std::error_code error;
  std::filesystem::remove_all(root_, error);
}

std::string FakeTracefs::Mount(const std::string& type, const std::string& point,
                               const std::string& options) {
  std::string escaped;
  for (char c : point)
    escaped += c == ' ' ? std::string("\\040") : std::string(1, c);
  return fmt::format("36 25 0:12 / {} {},relatime shared:9 - {} {} rw\n", escaped, options, type,
                     type);
}

TracefsPlaces FakeTracefs::Places(const std::string& mountinfo, const std::string& lockdown) const {
  Write("mountinfo", mountinfo);
  Write("lockdown", lockdown);
  return {.mountinfo = root_ + "/mountinfo", .lockdown = root_ + "/lockdown"};
}

void FakeTracefs::MakeDirectory(const std::string& path) const {
  std::filesystem::create_directories(root_ + "/" + path);
}

void FakeTracefs::Write(const std::string& path, const std::string& text) const {
  std::ofstream(root_ + "/" + path) << text;
}

}  // namespace probed::kernel::testing
