#include "client/local_files.h"

#include <sys/stat.h>

#include <cerrno>
#include <string_view>

#include "elf/usual_directories.h"

namespace probed::client {
namespace {

// What a bare name means is up to a process, and there is none here.
std::string HintFor(const std::string& path) {
  if (path.find('/') != std::string::npos) return {};
  return "'" + path +
         "' is a bare name: it means the file of that name that a target has mapped, and 'check' "
         "has no target, nor is there one in the usual directories. Write the file's path, or ask "
         "a target: probectl define --pid PID --dry-run.";
}

}  // namespace

std::string LocalFiles::Find(const std::string& path) const {
  struct stat status {};
  const bool is_bare = !path.empty() && path.find('/') == std::string::npos;
  if (dialect_ == lang::Dialect::kKernel || !is_bare || ::stat(path.c_str(), &status) == 0)
    return path;
  for (const std::string_view directory : elf::kUsualDirectories) {
    std::string candidate = std::string(directory) + "/" + path;
    if (::stat(candidate.c_str(), &status) == 0 && S_ISREG(status.st_mode)) return candidate;
  }
  return path;
}

lang::FileLookup LocalFiles::Lookup(const std::string& path) {
  lang::FileLookup lookup;
  struct stat status {};
  if (::stat(Find(path).c_str(), &status) != 0) {
    lookup.error_number = errno;
    lookup.hint = HintFor(path);
    return lookup;
  }
  lookup.regular = S_ISREG(status.st_mode);
  lookup.device = status.st_dev;
  lookup.inode = status.st_ino;
  return lookup;
}

Result<std::shared_ptr<const elf::File>> LocalFiles::Open(const std::string& path) {
  if (auto found = open_.find(path); found != open_.end()) return found->second;
  PROBED_TRY(auto file, elf::File::Open(Find(path)));
  open_.emplace(path, file);
  return file;
}

Result<uint64_t> LocalFiles::ResolveSymbol(const std::string& path, const std::string& symbol,
                                           uint64_t addend) {
  PROBED_TRY(auto file, Open(path));
  PROBED_TRY(elf::Symbol found, file->FindFunction(symbol));
  auto offset = file->ToOffset(found.address + addend);
  if (!offset) {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .reason = "ADDRESS_NOT_IN_FILE",
                 .message = symbol + " has no bytes in " + path,
                 .hint = "a file offset that lies in an executable segment",
                 .metadata = {}};
  }
  return offset->value;
}

}  // namespace probed::client
