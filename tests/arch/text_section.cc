#include "tests/arch/text_section.h"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <iterator>

namespace probed::arch {
namespace {

constexpr const char* kPaths[] = {
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/bin/python3.11",
};

template <class T>
T ReadAt(const std::vector<char>& file, uint64_t offset) {
  T value{};
  if (offset + sizeof value <= file.size()) std::memcpy(&value, &file[offset], sizeof value);
  return value;
}

TextSection ExtractText(const std::string& path, const std::vector<char>& file) {
  auto header = ReadAt<Elf64_Ehdr>(file, 0);
  auto names =
      ReadAt<Elf64_Shdr>(file, header.e_shoff + sizeof(Elf64_Shdr) * uint64_t{header.e_shstrndx});
  for (uint64_t index = 0; index < header.e_shnum; ++index) {
    auto section = ReadAt<Elf64_Shdr>(file, header.e_shoff + sizeof(Elf64_Shdr) * index);
    uint64_t name_at = names.sh_offset + section.sh_name;
    if (name_at >= file.size() || std::strcmp(&file[name_at], ".text") != 0) continue;
    const char* begin = &file[section.sh_offset];
    return {path, section.sh_addr, std::vector<uint8_t>(begin, begin + section.sh_size)};
  }
  return {path, 0, {}};
}

}  // namespace

std::vector<TextSection> LibraryTexts() {
  std::vector<TextSection> texts;
  for (const char* path : kPaths) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) continue;
    std::vector<char> file{std::istreambuf_iterator<char>(stream), {}};
    TextSection text = ExtractText(path, file);
    if (!text.bytes.empty()) texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace probed::arch
