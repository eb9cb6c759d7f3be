#pragma once
// Symbols that were moved out of a file: into its .gnu_debugdata, or into a separate debug file.
// GDB manual, "Separate Debug Files" and "MiniDebugInfo".

#include <optional>
#include <string>
#include <vector>

#include "elf/headers.h"

namespace probed::elf {

struct DebugFile {
  std::string path;
  Image image;
  Headers headers;
};

// The stripped file; borrowed for the call.
struct DebugFileRequest {
  const std::string& path;
  const std::string& root;
  const std::string& build_id;
  const Image& image;
  const Headers& headers;
};

// The debug file that belongs to the file, by build-id, else by the name and checksum of its
// .gnu_debuglink. A debug file of another build is never taken.
std::optional<DebugFile> FindDebugFile(const DebugFileRequest& request);

// The ELF file inside .gnu_debugdata.
std::optional<DebugFile> ReadDebugData(const Image& image, const Headers& headers);

}  // namespace probed::elf
