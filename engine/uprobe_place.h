#pragma once
// Whether a kernel uprobe would meet what the daemon itself has changed in a target.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/probe/site.h"

namespace probed::engine {

// The same file, whatever the names.
bool IsSameFile(const std::string& a, const std::string& b);

// Code of a target that we have changed, or may change at any time: file offsets.
struct ChangedCode {
  TargetId target;
  std::string module;
  uint64_t begin = 0, end = 0;
};

// Of a site: what a jump there displaces, and the padding that its jump leads through.
void AppendChangedCode(TargetId target, const probe::Site& site, std::vector<ChangedCode>& list);

// PLACE_IN_USE: the place is in code of ours. The kernel takes the instruction there from the file
// and goes on behind it, in the middle of a jump of ours, or does not go where that led; and where
// we have a breakpoint our hits would be its own.
Status CheckUprobePlace(const std::vector<ChangedCode>& ours, const std::string& path,
                        uint64_t offset);
// Of "PATH:0xOFFSET", as the kernel names it; every other place is in no program.
Status CheckUprobePlace(const std::vector<ChangedCode>& ours, const std::string& place);

}  // namespace probed::engine
