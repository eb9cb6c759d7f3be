#include "daemon/version.h"

namespace probed::daemon {

std::string_view Version() {
  return PROBED_VERSION;
}

}  // namespace probed::daemon
