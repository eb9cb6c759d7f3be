#pragma once
// An own tracefs instance: own buffers, own switches, own filters, so that nobody's tracing is
// touched. Its directory is locked (flock) for as long as it lives: that is how others tell that
// its owner is alive, in whatever pid namespace.

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/kernel/owner.h"
#include "engine/kernel/tracefs.h"

namespace probed::kernel {

class Instance {
 public:
  // Recording is on, no event is. The serial of `owner` is raised until the name is free.
  static Result<Instance> Create(const Tracefs& tracefs, Owner owner);
  Instance(Instance&&) noexcept;
  Instance& operator=(Instance&&) = delete;
  ~Instance();  // removes it; whoever reads its pipes must have closed them

  const Owner& owner() const { return owner_; }
  // Relative to the root of tracefs.
  const std::string& directory() const { return directory_; }

 private:
  Instance(const Tracefs& tracefs, Owner owner, UniqueFd lock);

  Tracefs tracefs_;
  Owner owner_;
  std::string directory_;
  UniqueFd lock_;
};

// The lock on a directory that nobody holds; invalid when somebody does or it is gone.
UniqueFd LockIfAbandoned(const Tracefs& tracefs, const std::string& directory);

}  // namespace probed::kernel
