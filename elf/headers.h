#pragma once
// The ELF header, program headers and section headers, checked against the file. gABI chapters
// 4, 5.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "elf/handle.h"
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

struct FileRange {
  uint64_t offset = 0;
  uint64_t size = 0;
};

// Where `size` bytes at a link address are in the file, at most up to the end of their segment.
FileRange RangeAt(std::span<const Segment> segments, LinkAddr address, uint64_t size);

// The section as records of `type`; null for null, SHT_NOBITS, compressed sections, and sections
// not in the file.
Elf_Data* DataOf(const Handle& elf, const Section* section, Elf_Type type);

// The section's bytes; empty where DataOf is null. Not through libelf, which would keep a copy.
std::vector<uint8_t> ReadSection(const Image& image, const Section& section);

}  // namespace probed::elf
