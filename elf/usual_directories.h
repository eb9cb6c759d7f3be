#pragma once
// Where a bare file name is looked for when nothing of that name is mapped (yet).

#include <array>
#include <string_view>

namespace probed::elf {

// The dynamic linker's directories on Debian, then those of programs.
inline constexpr std::array<std::string_view, 7> kUsualDirectories = {
    "/usr/local/lib", "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",     "/usr/lib",
    "/usr/local/bin", "/usr/bin",
    "/usr/sbin"};

}  // namespace probed::elf
