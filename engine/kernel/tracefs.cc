#include "engine/kernel/tracefs.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "base/file.h"

namespace probed::kernel {
namespace {

struct Mount {
  std::string root;  // where tracefs' files are
  bool read_only = false;
};

// Octal escapes of mountinfo: proc(5).
std::string Unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    int code = 0;
    const bool escaped = text[i] == '\\' && i + 3 < text.size() &&
                         std::from_chars(&text[i + 1], &text[i + 4], code, 8).ptr == &text[i + 4];
    out += escaped ? static_cast<char>(code) : text[i];
    if (escaped) i += 3;
  }
  return out;
}

bool HasOption(std::string_view options, std::string_view wanted) {
  while (!options.empty()) {
    const size_t comma = options.find(',');
    if (options.substr(0, comma) == wanted) return true;
    if (comma == std::string_view::npos) return false;
    options.remove_prefix(comma + 1);
  }
  return false;
}

// "ID PARENT DEVICE ROOT POINT OPTIONS [TAG...] - TYPE SOURCE SUPER_OPTIONS"
std::optional<Mount> ParseMount(const std::string& line) {
  std::istringstream words(line);
  std::string id, parent, device, root, point, options, word, type, source, super_options;
  words >> id >> parent >> device >> root >> point >> options;
  while (words >> word && word != "-") {
  }
  words >> type >> source >> super_options;
  const bool debugfs = type == "debugfs";
  if ((type != "tracefs" && !debugfs) || root != "/") return std::nullopt;
  // debugfs mounts tracefs there by itself when it is first looked at (fs/tracefs, trace.c).
  return Mount{.root = Unescape(point) + (debugfs ? "/tracing" : ""),
               .read_only = HasOption(options, "ro") || HasOption(super_options, "ro")};
}

// The usual place first, then writable ones, then what has been mounted first.
std::optional<Mount> ChooseMount(const std::string& mountinfo) {
  std::vector<Mount> mounts;
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    auto mount = ParseMount(line);
    if (mount && access(mount->root.c_str(), F_OK) == 0) mounts.push_back(*std::move(mount));
  }
  if (mounts.empty()) return std::nullopt;
  const auto rank = [](const Mount& mount) {
    return (mount.read_only ? 2 : 0) + (mount.root == "/sys/kernel/tracing" ? 0 : 1);
  };
  return *std::min_element(mounts.begin(), mounts.end(),
                           [&](const Mount& a, const Mount& b) { return rank(a) < rank(b); });
}

Error Named(ErrorCode code, std::string reason, std::string message, std::string hint,
            int error_number = 0) {
  Error error{.code = code,
              .reason = std::move(reason),
              .message = std::move(message),
              .hint = std::move(hint),
              .metadata = {}};
  if (error_number != 0) error.metadata["errno"] = std::to_string(error_number);
  return error;
}

Error NotMounted() {
  return Named(ErrorCode::kFailedPrecondition, "TRACEFS_NOT_MOUNTED", "tracefs is not mounted",
               "mount -t tracefs tracefs /sys/kernel/tracing");
}

Error ReadOnly(const std::string& root) {
  return Named(ErrorCode::kFailedPrecondition, "TRACEFS_READ_ONLY", root + " is mounted read-only",
               "mount -o remount,rw " + root, EROFS);
}

Error Lockdown(const std::string& mode) {
  return Named(ErrorCode::kPermissionDenied, "KERNEL_LOCKDOWN",
               "the kernel is locked down (" + mode + "), which closes tracefs to everybody",
               "boot without lockdown=confidentiality; kernel_lockdown(7)", EPERM);
}

Error NoPermission(int error_number, std::string_view what, const std::string& path) {
  return Named(ErrorCode::kPermissionDenied, "TRACEFS_PERMISSION",
               fmt::format("no permission to {} {}", what, path),
               "run probed as root: files of tracefs belong to it", error_number);
}

}  // namespace

int ErrnoOf(const Error& error) {
  const auto found = error.metadata.find("errno");
  int value = 0;
  if (found != error.metadata.end()) {
    const std::string& text = found->second;
    std::from_chars(text.data(), text.data() + text.size(), value);
  }
  return value;
}

Result<Tracefs> Tracefs::Find(const TracefsPlaces& places) {
  PROBED_TRY(const std::string mountinfo, ReadFile(places.mountinfo));
  const auto mount = ChooseMount(mountinfo);
  if (!mount) return NotMounted();
  std::string mode;
  // "none [integrity] confidentiality"
  const auto lockdown = ReadFile(places.lockdown, 4096);
  if (lockdown.ok()) {
    const size_t open = lockdown->find('['), close = lockdown->find(']');
    if (open < close && close != std::string::npos)
      mode = lockdown->substr(open + 1, close - open - 1);
  }
  Tracefs tracefs(mount->root, mode);
  PROBED_RETURN_IF_ERROR(tracefs.CheckUsable(mount->read_only));
  return tracefs;
}

// A kernel that is locked down for confidentiality creates no files in tracefs at all.
Status Tracefs::CheckUsable(bool read_only) const {
  if (access(root_.c_str(), X_OK) != 0) return Explain(errno, "look into", "");
  if (!Has("instances")) {
    if (lockdown_ == "confidentiality") return Lockdown(lockdown_);
    return Named(ErrorCode::kFailedPrecondition, "TRACEFS_EMPTY",
                 root_ + " has no instances directory",
                 "a kernel with CONFIG_TRACING that is not locked down", ENOENT);
  }
  if (read_only) return ReadOnly(root_);
  return {};
}

bool Tracefs::Has(std::string_view file) const {
  return access(Path(file).c_str(), F_OK) == 0;
}

Error Tracefs::Explain(int error_number, std::string_view what, std::string_view file) const {
  const std::string path = file.empty() ? root_ : Path(file);
  if (error_number == EROFS) return ReadOnly(root_);
  if (error_number == EPERM && lockdown_ == "confidentiality") return Lockdown(lockdown_);
  if (error_number == EACCES || error_number == EPERM)
    return NoPermission(error_number, what, path);
  return ErrnoError(error_number, fmt::format("{} {}", what, path));
}

Result<std::string> Tracefs::Read(std::string_view file) const {
  auto text = ReadFile(Path(file));
  if (text.ok() || ErrnoOf(text.error()) == 0) return text;
  return Explain(ErrnoOf(text.error()), "read", file);
}

Status Tracefs::Write(std::string_view file, std::string_view text) const {
  // Opening for writing alone does not truncate; O_TRUNC would delete what others have defined.
  const UniqueFd fd(open(Path(file).c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return Explain(errno, "open", file);
  ssize_t written;
  do {
    written = write(fd.get(), text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) return Explain(errno, "write", file);
  if (static_cast<size_t>(written) != text.size()) return Explain(EIO, "write", file);
  return {};
}

std::vector<std::string> Tracefs::Directories(std::string_view directory) const {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(opendir(Path(directory).c_str()), closedir);
  if (!stream) return names;
  while (const dirent* entry = readdir(stream.get())) {
    const std::string name = entry->d_name;
    struct stat status {};
    if (name == "." || name == ".." ||
        fstatat(dirfd(stream.get()), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (S_ISDIR(status.st_mode)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace probed::kernel
