#include "engine/uprobe_place.h"

#include <sys/stat.h>

#include <charconv>

#include <fmt/format.h>

#include "engine/sys/proc.h"

namespace probed::engine {
namespace {

// What a jump of five bytes displaces. A breakpoint may become one at any time.
constexpr uint64_t kLongestRegion = 4 + 15;

bool IsInTheWay(const ChangedCode& code, const std::string& path, uint64_t offset) {
  if (offset < code.begin || offset >= code.end) return false;
  const std::string mapped = sys::ProcPath(code.target.pid, "root" + code.module);
  return code.module == path || IsSameFile(mapped, path);
}

Error PlaceInUse(const ChangedCode& code) {
  return Error{.code = ErrorCode::kFailedPrecondition,
               .reason = "PLACE_IN_USE",
               .message = fmt::format("process {} has a breakpoint or a jump of ours at {}+{:#x}, "
                                      "which a kernel uprobe there would break",
                                      code.target.pid, code.module, code.begin),
               .hint =
                   "delete the probe that it belongs to, or detach from that process; or leave "
                   "--mechanism kernel out",
               .metadata = {}};
}

}  // namespace

bool IsSameFile(const std::string& a, const std::string& b) {
  struct stat first {
  }, second{};
  return stat(a.c_str(), &first) == 0 && stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

void AppendChangedCode(TargetId target, const probe::Site& site, std::vector<ChangedCode>& list) {
  const bool is_used = !site.probes().empty() || site.has_hooks() || site.armed();
  if (!is_used || site.mechanism() == Mechanism::kNone || site.is_generated()) return;
  const uint64_t offset = site.place().offset.value;
  const auto append = [&](uint64_t begin, uint64_t size) {
    list.push_back({target, site.place().module, begin, begin + size});
  };
  append(offset, kLongestRegion);
  if (!site.optimization()) return;
  // In the same segment as the site, so as far from it in the file as in memory.
  for (const probe::CodePatch& patch : site.optimization()->patches)
    append(offset + (patch.address.value - site.address().value), patch.patched.size());
}

Status CheckUprobePlace(const std::vector<ChangedCode>& ours, const std::string& path,
                        uint64_t offset) {
  for (const ChangedCode& code : ours)
    if (IsInTheWay(code, path, offset)) return PlaceInUse(code);
  return {};
}

Status CheckUprobePlace(const std::vector<ChangedCode>& ours, const std::string& place) {
  constexpr std::string_view kBefore = ":0x";
  const size_t end = place.rfind(kBefore);
  if (!place.starts_with('/') || end == place.npos) return {};
  uint64_t offset = 0;
  std::from_chars(place.data() + end + kBefore.size(), place.data() + place.size(), offset, 16);
  return CheckUprobePlace(ours, place.substr(0, end), offset);
}

}  // namespace probed::engine
