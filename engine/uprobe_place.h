#pragma once
// Whether a kernel uprobe would meet what the daemon itself has changed in a target.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace probed::engine {

// The same file, whatever the names.
bool IsSameFile(const std::string& a, const std::string& b);

// PLACE_IN_USE: a site of ours is there, or may displace the instruction there: the kernel takes
// that from the file and goes on behind it, in the middle of a jump of ours, and where we have a
// breakpoint our hits would be its own. `sites`: Engine::ListSites.
Status CheckUprobePlace(const std::vector<SiteInfo>& sites, const std::string& path,
                        uint64_t offset);
// Of "PATH:0xOFFSET", as the kernel names it; every other place is in no program.
Status CheckUprobePlace(const std::vector<SiteInfo>& sites, const std::string& place);

}  // namespace probed::engine
