#include "elf/headers.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace probed::elf {
namespace {

constexpr size_t kMaxSectionName = 255;

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

// By the bytes that it begins with: what is most often named instead.
std::string HintInsteadOf(std::string_view start) {
  if (start.starts_with("#!")) return "it is a script: name the program that runs it";
  if (start.starts_with("/*"))
    return "it is text, maybe for the linker: name the library itself, as in libc.so.6";
  return "name a program or a shared library";
}

bool IsPlain(const Elf64_Shdr& header) {
  return header.sh_type != SHT_NOBITS && (header.sh_flags & SHF_COMPRESSED) == 0;
}

Result<Elf64_Ehdr> ReadElfHeader(const Image& image, Elf* elf, const std::string& path) {
  Elf64_Ehdr header{};
  std::vector<uint8_t> magic = image.Read(0, SELFMAG);
  if (magic.size() != SELFMAG || std::memcmp(magic.data(), ELFMAG, SELFMAG) != 0) {
    std::string_view start(reinterpret_cast<const char*>(magic.data()), magic.size());
    return FileError("NOT_ELF", path, "is not an ELF file", HintInsteadOf(start));
  }
  if (::gelf_getehdr(elf, &header) == nullptr) {
    return Malformed(path, "has a damaged ELF header");
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return FileError("ELF_CLASS", path, "is not a 64-bit little-endian ELF file",
                     "only 64-bit programs can be probed");
  }
  return header;
}

// libelf leaves out what a truncated file does not hold, and knows counts that the kernel does not.
Result<std::vector<Elf64_Phdr>> ReadProgramHeaders(Elf* elf, const Elf64_Ehdr& header,
                                                   const std::string& path) {
  std::vector<Elf64_Phdr> result(header.e_phnum);
  if (result.empty()) return result;
  if (header.e_phentsize != sizeof(Elf64_Phdr)) {
    return Malformed(path, "has program headers of an unknown size");
  }
  size_t count = 0;
  bool is_there = ::elf_getphdrnum(elf, &count) == 0 && count == result.size();
  const Elf64_Phdr* table = is_there ? ::elf64_getphdr(elf) : nullptr;
  if (table == nullptr) return Malformed(path, "ends before its program headers");
  std::copy_n(table, count, result.begin());
  return result;
}

void NameSections(const Image& image, Elf* elf, std::vector<Section>* sections) {
  size_t names = 0;
  if (::elf_getshdrstrndx(elf, &names) != 0 || names >= sections->size()) return;
  // libelf would read, or inflate, however much this claims to be.
  const Elf64_Shdr& table = (*sections)[names].header;
  if (!IsPlain(table) || !image.Holds(table.sh_offset, table.sh_size)) return;
  for (Section& section : *sections) {
    const char* name = ::elf_strptr(elf, names, section.header.sh_name);
    if (name != nullptr) section.name.assign(name, ::strnlen(name, kMaxSectionName));
  }
}

std::vector<Section> ReadSections(const Image& image, Elf* elf) {
  size_t count = 0;
  if (::elf_getshdrnum(elf, &count) != 0) return {};
  std::vector<Section> sections(count);
  for (size_t i = 0; i < count; ++i) {
    if (::gelf_getshdr(::elf_getscn(elf, i), &sections[i].header) == nullptr) return {};
  }
  NameSections(image, elf, &sections);
  return sections;
}

template <class T, class Predicate>
const T* Find(const std::vector<T>& list, Predicate matches) {
  auto found = std::find_if(list.begin(), list.end(), matches);
  return found == list.end() ? nullptr : &*found;
}

}  // namespace

const Section* Headers::FindSection(std::string_view name) const {
  return Find(sections, [&](const Section& section) { return section.name == name; });
}

const Section* Headers::FindSection(uint32_t type) const {
  return Find(sections, [&](const Section& section) { return section.header.sh_type == type; });
}

const Elf64_Phdr* Headers::FindProgramHeader(uint32_t type) const {
  return Find(program, [&](const Elf64_Phdr& entry) { return entry.p_type == type; });
}

Result<Headers> ReadHeaders(const Image& image, const std::string& path) {
  Handle elf(image);
  Headers headers;
  PROBED_TRY(headers.header, ReadElfHeader(image, elf.get(), path));
  PROBED_TRY(headers.program, ReadProgramHeaders(elf.get(), headers.header, path));
  headers.sections = ReadSections(image, elf.get());
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

FileRange RangeAt(std::span<const Segment> segments, LinkAddr address, uint64_t size) {
  for (const Segment& segment : segments) {
    if (!segment.HoldsInFile(address)) continue;
    uint64_t skipped = address - segment.address;
    return {segment.offset.value + skipped, std::min(size, segment.file_size - skipped)};
  }
  return {};
}

Elf_Data* DataOf(const Handle& elf, const Section* section, Elf_Type type) {
  if (section == nullptr || !IsPlain(section->header)) return nullptr;
  return elf.Data(section->header.sh_offset, section->header.sh_size, type);
}

std::vector<uint8_t> ReadSection(const Image& image, const Section& section) {
  const Elf64_Shdr& header = section.header;
  if (!IsPlain(header) || !image.Holds(header.sh_offset, header.sh_size)) return {};
  return image.Read(header.sh_offset, header.sh_size);
}

}  // namespace probed::elf
