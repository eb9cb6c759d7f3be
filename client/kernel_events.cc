#include "client/kernel_events.h"

#include <unistd.h>

#include "base/file.h"

namespace probed::client {
namespace {

const std::string kTracefs = "/sys/kernel/tracing/";

// A uprobe event of that name is joined, not in the way.
bool IsUprobeEvent(const std::string& group, const std::string& event) {
  auto listing = ReadFile(kTracefs + "uprobe_events");
  return listing.ok() && listing->find(":" + group + "/" + event + " ") != std::string::npos;
}

}  // namespace

bool IsKernelEvent(const std::string& group, const std::string& event) {
  std::string format = kTracefs + "events/" + group + "/" + event + "/format";
  return ::access(format.c_str(), F_OK) == 0 && !IsUprobeEvent(group, event);
}

}  // namespace probed::client
