#include "engine/probe/address_space.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "elf/usual_directories.h"
#include "engine/sys/proc.h"

namespace probed::probe {
namespace {

std::string_view BaseName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

Error NotFound(Error error, const std::string& path) {
  const bool is_bare = path.find('/') == std::string::npos;
  error.hint = is_bare
                   ? "a path, or a name of a file that a target has mapped (--pid PID) or that is "
                     "in the usual directories"
                   : "another path; with --pid PID it is one of that process's own file system";
  return error;
}

// Follows symbolic links inside the root directory of the process, as the process would.
Result<struct stat> StatInRoot(pid_t pid, const std::string& path) {
  PROBED_TRY(UniqueFd root, OpenFile(sys::ProcPath(pid, "root"), O_PATH | O_DIRECTORY));
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT;
  long fd = ::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how);
  if (fd < 0) return ErrnoError(errno, path);
  UniqueFd file(static_cast<int>(fd));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return ErrnoError(errno, path);
  return status;
}

// Of the client, which has sent us the path, we know no directory.
Error NotAbsolute(const std::string& path) {
  return Error{.code = ErrorCode::kInvalidArgument,
               .reason = "PATH_NOT_ABSOLUTE",
               .message = path + " is relative to a directory that is not known here",
               .hint = "write the absolute path",
               .metadata = {{"errno", std::to_string(ENOENT)}}};
}

// Where maps may show numbers that are not stat's: the device on btrfs, those of a layer's file on
// overlayfs.
bool IsOnStackedFileSystem(const std::string& path) {
  struct statfs status {};
  if (::statfs(path.c_str(), &status) != 0) return false;
  return status.f_type == OVERLAYFS_SUPER_MAGIC || status.f_type == BTRFS_SUPER_MAGIC;
}

// Two file systems may have files of the same name and inode number.
bool IsFile(const std::string& path, uint64_t device, uint64_t inode) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || status.st_ino != inode) return false;
  return status.st_dev == device || IsOnStackedFileSystem(path);
}

// The maps show paths as we would reach them; below another root the process has shorter ones.
void MakePathsOfProcess(pid_t pid, std::vector<elf::Mapping>& mappings) {
  std::error_code error;
  std::string root = std::filesystem::read_symlink(sys::ProcPath(pid, "root"), error);
  if (error || root == "/") return;
  for (auto& mapping : mappings) {
    if (mapping.path.starts_with(root + "/")) mapping.path.erase(0, root.size());
  }
}

}  // namespace

Result<AddressSpace> AddressSpace::Read(pid_t pid) {
  PROBED_TRY(std::string text, sys::ReadMaps(pid));
  PROBED_TRY(auto mappings, elf::ParseMaps(text));
  MakePathsOfProcess(pid, mappings);
  return AddressSpace(pid, std::move(mappings));
}

const elf::Module* AddressSpace::FindBaseName(std::string_view name) const {
  for (const auto& module : map_.modules()) {
    if (module.inode != 0 && BaseName(module.path) == name) return &module;
  }
  return nullptr;
}

std::string AddressSpace::MapFile(const elf::Module& module) const {
  const auto& first = module.mappings.front();
  return sys::ProcPath(pid_,
                       fmt::format("map_files/{:x}-{:x}", first.start.value, first.end.value));
}

// What is mapped has stat's numbers, though not in maps. That it stands at the module's path proves
// nothing yet: another file system may have been mounted there since.
bool AddressSpace::IsStatOf(const elf::Module& module, uint64_t device, uint64_t inode) const {
  auto at_path = StatInRoot(pid_, module.path);
  if (!at_path.ok() || at_path->st_dev != device || at_path->st_ino != inode) return false;
  struct stat mapped {};
  if (::stat(MapFile(module).c_str(), &mapped) == 0) {  // needs CAP_CHECKPOINT_RESTORE
    return mapped.st_dev == device && mapped.st_ino == inode;
  }
  return IsOnStackedFileSystem(sys::ProcPath(pid_, "root" + module.path));
}

const elf::Module* AddressSpace::FindStat(uint64_t device, uint64_t inode,
                                          const std::string& path) const {
  if (const auto* module = map_.FindFile(device, inode)) return module;
  for (const auto& module : map_.modules()) {
    if (module.inode == 0 || module.deleted || BaseName(module.path) != BaseName(path)) continue;
    if (IsStatOf(module, device, inode)) return &module;
  }
  return nullptr;
}

FileReference AddressSpace::Refer(const elf::Module& module) const {
  FileReference reference{.path = module.path,
                          .open_path = sys::ProcPath(pid_, "root" + module.path),
                          .device = module.device,
                          .inode = module.inode,
                          .mapped = true};
  const uint64_t device = module.device, inode = module.inode;
  if (!module.deleted && IsFile(reference.open_path, device, inode)) return reference;
  const std::string exe = sys::ProcPath(pid_, "exe"), mapped = MapFile(module);
  const bool may_look = ::access(mapped.c_str(), R_OK) == 0;
  const bool stands_there = !module.deleted && IsOnStackedFileSystem(reference.open_path);
  if (IsFile(exe, device, inode)) {
    reference.open_path = exe;
  } else if (may_look || !stands_there) {
    reference.open_path = mapped;
  }
  return reference;
}

Result<FileReference> AddressSpace::Resolve(const std::string& path) const {
  if (path.find('/') == std::string::npos) {
    if (const auto* module = FindBaseName(path)) return Refer(*module);
    for (std::string_view directory : elf::kUsualDirectories) {
      std::string candidate = fmt::format("{}/{}", directory, path);
      auto found = StatInRoot(pid_, candidate);  // /usr/lib/python3 is a directory
      if (found.ok() && S_ISREG(found->st_mode)) return Resolve(candidate);
    }
  }
  const bool is_relative = path.find('/') != std::string::npos && path.front() != '/';
  if (is_relative) return NotAbsolute(path);
  auto status = StatInRoot(pid_, path);
  if (status.ok()) {
    if (const auto* module = FindStat(status->st_dev, status->st_ino, path)) return Refer(*module);
  }
  // The file was replaced or removed since it was mapped: the process still runs the old one. Or
  // the process has changed its root since, as servers do that shut themselves in.
  for (const auto& module : map_.modules()) {
    const bool out_of_reach = module.deleted || (module.inode != 0 && !status.ok());
    if (out_of_reach && module.path == path) return Refer(module);
  }
  if (!status.ok()) return NotFound(std::move(status).error(), path);
  if (!S_ISREG(status->st_mode)) {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .reason = "NOT_A_REGULAR_FILE",
                 .message = path + " is not a regular file",
                 .hint = "",
                 .metadata = {{"errno", std::to_string(EINVAL)}}};
  }
  return FileReference{
      .path = path,
      .open_path = sys::ProcPath(pid_, (path.front() == '/' ? "root" : "root/") + path),
      .device = status->st_dev,
      .inode = status->st_ino};
}

const elf::Module* AddressSpace::Find(const lang::Definition& definition) const {
  return FindStat(definition.device, definition.inode, definition.path);
}

std::vector<RemoteAddr> AddressSpace::Executable(const elf::Module& module, FileOffset offset) {
  std::vector<RemoteAddr> places;
  for (const auto& mapping : module.mappings) {
    uint64_t size = mapping.end - mapping.start;
    if (!mapping.executable || mapping.shared || offset < mapping.offset ||
        offset - mapping.offset >= size)
      continue;
    places.push_back(mapping.start + (offset - mapping.offset));
  }
  return places;
}

std::optional<RemoteAddr> AddressSpace::Writable(const elf::Module& module, FileOffset offset) {
  for (const auto& mapping : module.mappings) {
    uint64_t size = mapping.end - mapping.start;
    if (!mapping.writable || mapping.shared) continue;
    if (offset < mapping.offset || offset - mapping.offset >= size) continue;
    return mapping.start + (offset - mapping.offset);
  }
  return std::nullopt;
}

uint64_t ReadAuxiliaryValue(pid_t pid, uint64_t type) {
  auto vector = ReadFile(sys::ProcPath(pid, "auxv"));
  if (!vector.ok()) return 0;
  uint64_t entry[2];
  for (size_t at = 0; at + sizeof entry <= vector->size(); at += sizeof entry) {
    std::memcpy(entry, vector->data() + at, sizeof entry);
    if (entry[0] == type) return entry[1];
  }
  return 0;
}

}  // namespace probed::probe
