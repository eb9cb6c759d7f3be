#pragma once
// Notes: the build-id and marks of the toolchain. gABI, "Note Section".

#include <string>

#include "elf/headers.h"

namespace probed::elf {

struct Notes {
  std::string build_id;  // hex; empty when there is none
  bool has_go_id = false;
};

// Notes of the program headers, else of the sections.
Notes ReadNotes(const Image& image, const Headers& headers);

// True when Go's linker made the file, by its note (kept by strip) or its sections.
bool LooksLikeGo(const Notes& notes, const Headers& headers);

}  // namespace probed::elf
