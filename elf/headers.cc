#include "elf/headers.h"

#include <algorithm>
#include <cstring>

#include "elf/byte_reader.h"

namespace probed::elf {
namespace {

// Section numbers of symbols are 16 bits wide unless extended; nothing real comes near this.
constexpr uint64_t kMaxSections = 1 << 20;

Error FileError(std::string reason, const std::string& path, const std::string& problem,
                std::string hint) {
  return Error{.code = ErrorCode::kInvalidArgument,
               .reason = std::move(reason),
               .message = path + " " + problem,
               .hint = std::move(hint),
               .metadata = {{"path", path}}};
}

Error Malformed(const std::string& path, const std::string& problem) {
  return FileError("ELF_MALFORMED", path, problem, "check whether the file is complete");
}

Result<Elf64_Ehdr> ReadElfHeader(const Image& image, const std::string& path) {
  Elf64_Ehdr header{};
  unsigned char* ident = header.e_ident;
  if (!image.ReadInto(0, ident, EI_NIDENT) || std::memcmp(ident, ELFMAG, SELFMAG) != 0) {
    return FileError("NOT_ELF", path, "is not an ELF file", "name a program or a shared library");
  }
  if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB) {
    return FileError("ELF_CLASS", path, "is not a 64-bit little-endian ELF file",
                     "only 64-bit programs can be probed");
  }
  if (!image.ReadInto(0, &header, sizeof header)) {
    return Malformed(path, "ends inside its ELF header");
  }
  return header;
}

Result<std::vector<Elf64_Phdr>> ReadProgramHeaders(const Image& image, const Elf64_Ehdr& header,
                                                   const std::string& path) {
  std::vector<Elf64_Phdr> result;
  if (header.e_phnum == 0) return result;
  if (header.e_phentsize != sizeof(Elf64_Phdr)) {
    return Malformed(path, "has program headers of an unknown size");
  }
  size_t count = header.e_phnum;
  std::vector<uint8_t> bytes = image.ReadAll(header.e_phoff, count * sizeof(Elf64_Phdr));
  if (bytes.empty()) return Malformed(path, "ends before its program headers");
  result.resize(count);
  std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

// gABI: when the count or the string table's index does not fit, section 0 holds it.
struct SectionTableShape {
  uint64_t count = 0;
  uint64_t names = 0;
};

SectionTableShape ReadShape(const Image& image, const Elf64_Ehdr& header) {
  SectionTableShape shape{header.e_shnum, header.e_shstrndx};
  Elf64_Shdr first{};
  bool extended = header.e_shnum == 0 || header.e_shstrndx == SHN_XINDEX;
  if (!extended || !image.ReadInto(header.e_shoff, &first, sizeof first)) return shape;
  if (header.e_shnum == 0) shape.count = first.sh_size;
  if (header.e_shstrndx == SHN_XINDEX) shape.names = first.sh_link;
  return shape;
}

std::vector<Section> ReadSections(const Image& image, const Elf64_Ehdr& header) {
  std::vector<Section> sections;
  if (header.e_shoff == 0 || header.e_shentsize != sizeof(Elf64_Shdr)) return sections;
  SectionTableShape shape = ReadShape(image, header);
  if (shape.count == 0 || shape.count > kMaxSections) return sections;
  std::vector<uint8_t> bytes = image.ReadAll(header.e_shoff, shape.count * sizeof(Elf64_Shdr));
  if (bytes.empty()) return sections;
  sections.resize(shape.count);
  ByteReader reader(bytes);
  for (Section& section : sections)
    section.header = reader.Take<Elf64_Shdr>();
  if (shape.names >= shape.count) return sections;
  std::vector<uint8_t> names = ReadSection(image, sections[shape.names]);
  for (Section& section : sections)
    section.name = StringAt(names, section.header.sh_name);
  return sections;
}

}  // namespace

const Section* Headers::FindSection(std::string_view name) const {
  auto found = std::find_if(sections.begin(), sections.end(),
                            [&](const Section& section) { return section.name == name; });
  return found == sections.end() ? nullptr : &*found;
}

const Section* Headers::FindSection(uint32_t type) const {
  auto found = std::find_if(sections.begin(), sections.end(),
                            [&](const Section& section) { return section.header.sh_type == type; });
  return found == sections.end() ? nullptr : &*found;
}

const Elf64_Phdr* Headers::FindProgramHeader(uint32_t type) const {
  auto found = std::find_if(program.begin(), program.end(),
                            [&](const Elf64_Phdr& entry) { return entry.p_type == type; });
  return found == program.end() ? nullptr : &*found;
}

Result<Headers> ReadHeaders(const Image& image, const std::string& path) {
  Headers headers;
  PROBED_TRY(headers.header, ReadElfHeader(image, path));
  PROBED_TRY(headers.program, ReadProgramHeaders(image, headers.header, path));
  headers.sections = ReadSections(image, headers.header);
  return headers;
}

Result<std::vector<Segment>> ReadSegments(const Headers& headers, uint64_t file_size,
                                          const std::string& path) {
  if (headers.header.e_type != ET_EXEC && headers.header.e_type != ET_DYN) {
    return FileError("ELF_TYPE", path, "is an object or core file",
                     "name a program or a shared library");
  }
  std::vector<Segment> segments;
  for (const Elf64_Phdr& entry : headers.program) {
    if (entry.p_type != PT_LOAD) continue;
    if (entry.p_filesz > entry.p_memsz || entry.p_vaddr + entry.p_memsz < entry.p_vaddr) {
      return Malformed(path, "has a segment of an impossible size");
    }
    if (entry.p_offset > file_size || entry.p_filesz > file_size - entry.p_offset) {
      return Malformed(path, "has a segment that ends past the end of the file");
    }
    segments.push_back({.address = {entry.p_vaddr},
                        .offset = {entry.p_offset},
                        .file_size = entry.p_filesz,
                        .memory_size = entry.p_memsz,
                        .readable = (entry.p_flags & PF_R) != 0,
                        .writable = (entry.p_flags & PF_W) != 0,
                        .executable = (entry.p_flags & PF_X) != 0});
  }
  return segments;
}

std::optional<FileOffset> ToOffset(std::span<const Segment> segments, LinkAddr address) {
  for (const Segment& segment : segments) {
    if (segment.HoldsInFile(address)) return segment.offset + (address - segment.address);
  }
  return std::nullopt;
}

std::vector<uint8_t> ReadAt(const Image& image, std::span<const Segment> segments, LinkAddr address,
                            uint64_t size) {
  for (const Segment& segment : segments) {
    if (!segment.HoldsInFile(address)) continue;
    uint64_t skipped = address - segment.address;
    return image.Read(segment.offset.value + skipped, std::min(size, segment.file_size - skipped));
  }
  return {};
}

std::vector<uint8_t> ReadSection(const Image& image, const Section& section) {
  const Elf64_Shdr& header = section.header;
  if (header.sh_type == SHT_NOBITS || (header.sh_flags & SHF_COMPRESSED) != 0) return {};
  return image.ReadAll(header.sh_offset, header.sh_size);
}

}  // namespace probed::elf
