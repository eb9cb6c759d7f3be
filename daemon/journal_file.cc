#include "daemon/journal_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/plural.h"

namespace probed::daemon {
namespace {

constexpr const char* kPrefix = "patches.";

bool HasName(int file) {
  struct stat status {};
  return fstat(file, &status) == 0 && status.st_nlink > 0;
}

// Somebody who cleans up may have taken the new file for a leftover before it was locked.
Result<UniqueFd> CreateNamed(const std::string& directory) {
  constexpr int kAttempts = 10;
  for (int i = 0; i < kAttempts; ++i) {
    std::string path = fmt::format("{}/{}XXXXXX", directory, kPrefix);
    UniqueFd file(mkostemp(path.data(), O_CLOEXEC));
    if (!file.valid()) return ErrnoError(errno, path);
    if (flock(file.get(), LOCK_EX | LOCK_NB) == 0 && HasName(file.get())) return file;
  }
  return ErrnoError(EBUSY, directory);
}

void Clean(const std::string& path, engine::Engine& engine) {
  UniqueFd file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid() || flock(file.get(), LOCK_EX | LOCK_NB) != 0) return;
  const engine::SalvageReport report = engine.Salvage(file.get());
  for (const Error& error : report.errors)
    spdlog::warn("{}: {}", path, error.ToString());
  if (report.processes > 0) {
    spdlog::info("gave back {} that a dead daemon had left: {}, {}",
                 Plural(report.processes, "process"), Plural(report.sites, "site"),
                 Plural(report.returns, "return"));
  }
  if (report.errors.empty()) unlink(path.c_str());
}

}  // namespace

std::string RuntimeDirectory() {
  const char* directories = std::getenv("RUNTIME_DIRECTORY");
  if (directories == nullptr) return {};
  const std::string all = directories;
  return all.substr(0, all.find(':'));
}

Result<UniqueFd> CreateJournal(const std::string& directory) {
  if (!directory.empty()) return CreateNamed(directory);
  UniqueFd file(memfd_create("probed-patches", MFD_CLOEXEC));
  if (!file.valid()) return ErrnoError(errno, "memfd_create");
  return file;
}

void RemoveJournal(int journal) {
  std::error_code error;
  const auto path = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", journal), error);
  if (!error && path.filename().string().starts_with(kPrefix)) unlink(path.c_str());
}

void CleanLeftovers(const std::string& directory, engine::Engine& engine) {
  if (directory.empty()) return;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().filename().string().starts_with(kPrefix)) Clean(entry.path(), engine);
  }
}

}  // namespace probed::daemon
