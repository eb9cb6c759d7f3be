#include "base/unique_fd.h"

#include <unistd.h>

namespace probed {

void UniqueFd::Reset(int fd) {
  int old = std::exchange(fd_, fd);
  if (old >= 0) ::close(old);
}

}  // namespace probed
