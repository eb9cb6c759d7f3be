#include "engine/kernel/instance.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <fmt/format.h>

namespace probed::kernel {
namespace {

constexpr uint32_t kMostSerials = 1000;

std::string DirectoryOf(const Owner& owner) {
  return "instances/" + InstanceName(owner);
}

// Somebody who sweeps may have taken the new directory for a leftover before it was locked, and
// removed it.
bool IsStillThere(int fd, const std::string& path) {
  struct stat opened {
  }, named{};
  return fstat(fd, &opened) == 0 && stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

}  // namespace

UniqueFd LockIfAbandoned(const Tracefs& tracefs, const std::string& directory) {
  const std::string path = tracefs.Path(directory);
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid() || flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return UniqueFd();
  if (!IsStillThere(fd.get(), path)) return UniqueFd();
  return fd;
}

Instance::Instance(const Tracefs& tracefs, Owner owner, UniqueFd lock)
    : tracefs_(tracefs), owner_(owner), directory_(DirectoryOf(owner)), lock_(std::move(lock)) {}

Instance::Instance(Instance&& other) noexcept
    : tracefs_(std::move(other.tracefs_)),
      owner_(other.owner_),
      directory_(std::exchange(other.directory_, {})),
      lock_(std::move(other.lock_)) {}

Result<Instance> Instance::Create(const Tracefs& tracefs, Owner owner) {
  for (; owner.serial < kMostSerials; ++owner.serial) {
    const std::string directory = DirectoryOf(owner);
    if (mkdir(tracefs.Path(directory).c_str(), 0700) != 0) {
      if (errno == EEXIST) continue;
      return tracefs.Explain(errno, "create", directory);
    }
    UniqueFd lock = LockIfAbandoned(tracefs, directory);
    if (!lock.valid()) continue;
    Instance instance(tracefs, owner, std::move(lock));
    PROBED_RETURN_IF_ERROR(tracefs.Write(directory + "/tracing_on", "1"));
    return instance;
  }
  return ErrnoError(EEXIST, "create " + tracefs.Path(DirectoryOf(owner)));
}

// The kernel switches its events off as it goes (trace.c, __remove_instance).
Instance::~Instance() {
  if (!directory_.empty()) rmdir(tracefs_.Path(directory_).c_str());
}

}  // namespace probed::kernel
