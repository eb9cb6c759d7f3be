#pragma once
// The ELF header, program headers and section headers, checked against the file. gABI chapters
// 4, 5.

#include <elf.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "elf/image.h"
#include "elf/segment.h"

namespace probed::elf {

struct Section {
  std::string name;
  Elf64_Shdr header;
};

struct Headers {
  Elf64_Ehdr header;
  std::vector<Elf64_Phdr> program;
  // Empty when the file has none, or when they make no sense: the kernel does not look at them
  // either.
  std::vector<Section> sections;

  const Section* FindSection(std::string_view name) const;
  const Section* FindSection(uint32_t type) const;
  const Elf64_Phdr* FindProgramHeader(uint32_t type) const;
};

// NOT_ELF, ELF_CLASS, ELF_MALFORMED. `path` is for messages.
Result<Headers> ReadHeaders(const Image& image, const std::string& path);

// The PT_LOADs. ELF_TYPE when the file is not a program or shared object, ELF_MALFORMED when a
// segment is not in the file.
Result<std::vector<Segment>> ReadSegments(const Headers& headers, uint64_t file_size,
                                          const std::string& path);

// Where the byte that the linker put at `address` is in the file: the PT_LOAD that holds it
// decides, never a section (gABI, "Program Header").
std::optional<FileOffset> ToOffset(std::span<const Segment> segments, LinkAddr address);

// Bytes of the file at a link address, at most up to the end of its segment.
std::vector<uint8_t> ReadAt(const Image& image, std::span<const Segment> segments, LinkAddr address,
                            uint64_t size);

// The section's bytes; empty for SHT_NOBITS, compressed sections, and sections not in the file.
std::vector<uint8_t> ReadSection(const Image& image, const Section& section);

}  // namespace probed::elf
