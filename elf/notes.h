#pragma once
// Notes: the build-id and marks of the toolchain. gABI, "Note Section".

#include <span>
#include <string>
#include <vector>

#include "elf/headers.h"

namespace probed::elf {

struct Note {
  std::string name;  // without its NUL
  uint32_t type = 0;
  std::vector<uint8_t> description;
};

// Notes of the program headers, else of the sections.
std::vector<Note> ReadNotes(const Image& image, const Headers& headers);

// Hex of the GNU build-id; empty when there is none.
std::string FindBuildId(std::span<const Note> notes);

// True when Go's linker made the file, by its note (kept by strip) or its sections.
bool LooksLikeGo(std::span<const Note> notes, const Headers& headers);

}  // namespace probed::elf
