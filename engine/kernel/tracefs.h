#pragma once
// The kernel's tracefs: where it is mounted, and its files with errors that have names. Nothing is
// mounted or truncated here. Thread-safe.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace probed::kernel {

// Where to look; other values are for tests.
struct TracefsPlaces {
  std::string mountinfo = "/proc/self/mountinfo";
  std::string lockdown = "/sys/kernel/security/lockdown";
};

class Tracefs {
 public:
  // TRACEFS_NOT_MOUNTED, TRACEFS_READ_ONLY, TRACEFS_PERMISSION or KERNEL_LOCKDOWN when it cannot be
  // used.
  static Result<Tracefs> Find(const TracefsPlaces& places = {});

  const std::string& root() const { return root_; }
  std::string Path(std::string_view file) const { return root_ + "/" + std::string(file); }
  bool Has(std::string_view file) const;

  // `file` is relative to the root. Errors are of the kinds above, or carry errno in their
  // metadata.
  Result<std::string> Read(std::string_view file) const;
  // One write(2) of all of `text`, which is what makes a line a line.
  Status Write(std::string_view file, std::string_view text) const;
  // Names of the directories in `directory`; empty when it cannot be read.
  std::vector<std::string> Directories(std::string_view directory) const;

  // The error of a system call on `file`, named by what stands in the way.
  Error Explain(int error_number, std::string_view what, std::string_view file) const;

 private:
  Tracefs(std::string root, std::string lockdown)
      : root_(std::move(root)), lockdown_(std::move(lockdown)) {}
  Status CheckUsable(bool read_only) const;

  std::string root_;
  std::string lockdown_;
};

// The number in the metadata of an ErrnoError; 0 without one.
int ErrnoOf(const Error& error);

}  // namespace probed::kernel
