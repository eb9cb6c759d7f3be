#include "engine/probe/map_calls.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string_view>

#include "engine/arch/x86_64/instruction.h"

namespace probed::probe {
namespace {

struct Named {
  std::string_view name;
  Hook hook;
};
constexpr std::array<Named, 7> kCalls = {{{"mmap", Hook::kMapped},
                                          {"mmap64", Hook::kMapped},
                                          {"mprotect", Hook::kProtected},
                                          {"__mprotect", Hook::kProtected},
                                          {"pkey_mprotect", Hook::kProtected},
                                          {"munmap", Hook::kUnmapped},
                                          {"mremap", Hook::kUnmapped}}};
// They take a hundred bytes or two.
constexpr uint64_t kLongestCall = 4096;

void AppendCalls(const elf::File& file, const elf::Symbol& function, Hook hook,
                 std::vector<MapCall>& calls) {
  auto offset = file.ToOffset(function.address);
  if (!offset || function.size > kLongestCall) return;
  auto code = file.Bytes(*offset, function.size);
  for (size_t at = 0; at < code.size();) {
    auto instruction = arch::Decode(std::span(code).subspan(at), function.address.value + at);
    if (!instruction.ok()) return;
    at += instruction->length;
    if (instruction->is_syscall && at < code.size()) calls.push_back({*offset + at, hook});
  }
}

}  // namespace

// glibc's and musl's, the latter being its own dynamic linker.
bool IsCLibrary(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libc.so") || name.starts_with("libc-") || name.starts_with("ld-musl");
}

std::vector<MapCall> FindMapCalls(const elf::File& file) {
  std::vector<MapCall> calls;
  std::set<LinkAddr> seen;
  for (const auto& function : file.functions()) {
    auto named = std::find_if(kCalls.begin(), kCalls.end(),
                              [&](const Named& call) { return call.name == function.name; });
    if (named == kCalls.end() || !seen.insert(function.address).second) continue;
    AppendCalls(file, function, named->hook, calls);
  }
  return calls;
}

bool HasMappedCode(const user_regs_struct& regs) {
  return (regs.rdx & PROT_EXEC) != 0 && static_cast<int32_t>(regs.r8) >= 0;
}

// Just-in-time compilers do that to memory without a file all the time.
bool HasMadeCode(const user_regs_struct& regs, const elf::ModuleMap& map) {
  const elf::Mapping* mapping = map.At(RemoteAddr{regs.rdi});
  return mapping != nullptr && mapping->inode != 0;
}

// munmap(2) answers 0, and both a negative number if they have failed.
bool HasMoved(const user_regs_struct& regs) {
  return static_cast<int64_t>(regs.rax) > 0 && regs.rax != regs.rdi;
}

bool HasUnmappedSites(const user_regs_struct& regs, const SiteTable& sites) {
  const uint64_t start = regs.rdi, size = regs.rsi;
  if (start + size < start) return false;
  auto any = [](const Site&) { return true; };
  return sites.FindBetween(RemoteAddr{start}, RemoteAddr{start + size}, any) != nullptr;
}

}  // namespace probed::probe
