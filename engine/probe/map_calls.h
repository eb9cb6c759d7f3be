#pragma once
// Where a C library has just asked the kernel to map or unmap: behind the system calls of mmap(3)
// and its kin. The dynamic linker tells of what it maps itself; a program that maps code on its own
// tells nobody. Any thread.

#include <sys/user.h>

#include <string_view>
#include <vector>

#include "base/address.h"
#include "elf/file.h"
#include "elf/module_map.h"
#include "engine/probe/site.h"
#include "engine/probe/site_table.h"

namespace probed::probe {

struct MapCall {
  FileOffset behind;  // the instruction after a system call
  Hook hook;          // kMapped, kProtected or kUnmapped
};

bool IsCLibrary(std::string_view path);
std::vector<MapCall> FindMapCalls(const elf::File& file);

// Of a thread behind such a call, whose arguments are in their registers still.
bool HasMappedCode(const user_regs_struct& regs);
// `regs` ask for PROT_EXEC.
bool HasMadeCode(const user_regs_struct& regs, const elf::ModuleMap& map);
bool HasMoved(const user_regs_struct& regs);
bool HasUnmappedSites(const user_regs_struct& regs, const SiteTable& sites);

}  // namespace probed::probe
