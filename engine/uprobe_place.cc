#include "engine/uprobe_place.h"

#include <sys/stat.h>

#include <charconv>

#include <fmt/format.h>

namespace probed::engine {
namespace {

// What a jump of five bytes displaces. A breakpoint may become one at any time.
constexpr uint64_t kLongestRegion = 4 + 15;

bool IsInTheWay(const SiteInfo& site, const std::string& path, uint64_t offset) {
  if (site.target == kKernelTarget || site.mechanism == Mechanism::kNone) return false;
  if (offset < site.offset || offset - site.offset >= kLongestRegion) return false;
  const std::string mapped = fmt::format("/proc/{}/root{}", site.target.pid, site.module);
  return site.module == path || IsSameFile(mapped, path);
}

Error PlaceInUse(const SiteInfo& site) {
  return Error{.code = ErrorCode::kFailedPrecondition,
               .reason = "PLACE_IN_USE",
               .message = fmt::format("process {} has a probe of ours at {}+{:#x}, which a kernel "
                                      "uprobe there would break",
                                      site.target.pid, site.module, site.offset),
               .hint = "delete that probe first, or leave --mechanism kernel out",
               .metadata = {}};
}

}  // namespace

bool IsSameFile(const std::string& a, const std::string& b) {
  struct stat first {
  }, second{};
  return stat(a.c_str(), &first) == 0 && stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

Status CheckUprobePlace(const std::vector<SiteInfo>& sites, const std::string& path,
                        uint64_t offset) {
  for (const SiteInfo& site : sites)
    if (IsInTheWay(site, path, offset)) return PlaceInUse(site);
  return {};
}

Status CheckUprobePlace(const std::vector<SiteInfo>& sites, const std::string& place) {
  constexpr std::string_view kBefore = ":0x";
  const size_t end = place.rfind(kBefore);
  if (!place.starts_with('/') || end == place.npos) return {};
  uint64_t offset = 0;
  std::from_chars(place.data() + end + kBefore.size(), place.data() + place.size(), offset, 16);
  return CheckUprobePlace(sites, place.substr(0, end), offset);
}

}  // namespace probed::engine
