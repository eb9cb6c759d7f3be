#include "engine/kernel/kprobes.h"

#include <cerrno>
#include <charconv>
#include <sstream>

#include "base/file.h"
#include "engine/kernel/tracefs.h"

namespace probed::kernel {
namespace {

std::optional<uint64_t> ParseAddress(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  uint64_t address = 0;
  const char* end = text.data() + text.size();
  if (text.empty() || std::from_chars(text.data(), end, address, 16).ptr != end)
    return std::nullopt;
  return address;
}

std::optional<bool> ReadSwitch(const std::string& path) {
  const auto text = ReadFile(path, 4096);
  if (!text.ok() || text->empty()) return std::nullopt;
  return text->front() == '1' || text->front() == 'Y';
}

Error Explain(const Error& error, const KprobePlaces& places) {
  const int number = ErrnoOf(error);
  if (number == ENOENT)
    return Error{ErrorCode::kFailedPrecondition,
                 "NO_KPROBES_DIRECTORY",
                 "there is no " + places.directory,
                 "mount -t debugfs debugfs /sys/kernel/debug; the kernel needs CONFIG_KPROBES",
                 {}};
  if (number == EPERM || number == EACCES)
    return Error{ErrorCode::kPermissionDenied,
                 "DEBUGFS_PERMISSION",
                 "no permission to read " + places.directory,
                 "run probed as root on a kernel that is not locked down (kernel_lockdown(7))",
                 {}};
  return error;
}

}  // namespace

// "ADDRESS  k|r  SYMBOL+0xOFF  [MODULE ] [GONE][DISABLED][OPTIMIZED][FTRACE]" (kernel/kprobes.c,
// report_probe); the module stands there without brackets.
std::vector<InstalledKprobe> ParseKprobeList(std::string_view text) {
  std::vector<InstalledKprobe> probes;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string address, kind, word;
    InstalledKprobe probe;
    if (!(words >> address >> kind >> probe.place)) continue;
    const auto number = ParseAddress(address);
    if (!number) continue;
    probe.address = *number;
    probe.is_return = kind == "r";
    while (words >> word) {
      if (!word.starts_with('[')) probe.module = word;
      probe.gone |= word.find("[GONE]") != std::string::npos;
      probe.disabled |= word.find("[DISABLED]") != std::string::npos;
      probe.optimized |= word.find("[OPTIMIZED]") != std::string::npos;
      probe.ftrace |= word.find("[FTRACE]") != std::string::npos;
    }
    probes.push_back(std::move(probe));
  }
  return probes;
}

// "0xBEGIN-0xEND\tSYMBOL"
std::vector<BlacklistedRange> ParseKprobeBlacklist(std::string_view text) {
  std::vector<BlacklistedRange> ranges;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string range, symbol;
    words >> range >> symbol;
    const size_t dash = range.find('-');
    if (dash == std::string::npos) continue;
    const auto begin = ParseAddress(std::string_view(range).substr(0, dash));
    const auto end = ParseAddress(std::string_view(range).substr(dash + 1));
    if (begin && end) ranges.push_back({*begin, *end, symbol});
  }
  return ranges;
}

Result<Kprobes> ReadKprobes(const KprobePlaces& places) {
  const auto list = ReadFile(places.directory + "/list");
  if (!list.ok()) return Explain(list.error(), places);
  const auto blacklist = ReadFile(places.directory + "/blacklist");
  return Kprobes{.installed = ParseKprobeList(*list),
                 .blacklist = ParseKprobeBlacklist(blacklist.ok() ? *blacklist : ""),
                 .armed = ReadSwitch(places.directory + "/enabled"),
                 .optimization = ReadSwitch(places.optimization)};
}

}  // namespace probed::kernel
