#include "engine/probe/function_slots.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace probed::probe {
namespace {

constexpr uint64_t kMaxTableBytes = 16 << 20;

// Whole records of the file from `offset`, as many as `bytes` hold.
template <class Record>
std::vector<Record> ReadRecords(const elf::File& file, FileOffset offset, uint64_t bytes) {
  auto raw = file.Bytes(offset, std::min(bytes, kMaxTableBytes));
  std::vector<Record> records(raw.size() / sizeof(Record));
  if (!records.empty()) std::memcpy(records.data(), raw.data(), records.size() * sizeof(Record));
  return records;
}

class DynamicSection {
 public:
  explicit DynamicSection(const elf::File& file) : file_(file) {
    auto headers = ReadRecords<Elf64_Ehdr>(file, {0}, sizeof(Elf64_Ehdr));
    if (headers.empty()) return;
    uint64_t size = headers[0].e_phnum * sizeof(Elf64_Phdr);
    for (const auto& header : ReadRecords<Elf64_Phdr>(file, {headers[0].e_phoff}, size)) {
      if (header.p_type != PT_DYNAMIC) continue;
      for (const auto& entry : ReadRecords<Elf64_Dyn>(file, {header.p_offset}, header.p_filesz)) {
        if (entry.d_tag == DT_NULL) break;
        tags_[entry.d_tag] = entry.d_un.d_val;
      }
    }
  }

  template <class Record>
  std::vector<Record> Table(int64_t address_tag, uint64_t bytes) const {
    auto found = tags_.find(address_tag);
    if (found == tags_.end()) return {};
    auto offset = file_.ToOffset(LinkAddr{found->second});
    return offset ? ReadRecords<Record>(file_, *offset, bytes) : std::vector<Record>{};
  }
  uint64_t Value(int64_t tag) const {
    auto found = tags_.find(tag);
    return found == tags_.end() ? 0 : found->second;
  }

 private:
  const elf::File& file_;
  std::map<int64_t, uint64_t> tags_;
};

std::vector<Elf64_Rela> Relocations(const DynamicSection& dynamic) {
  auto all = dynamic.Table<Elf64_Rela>(DT_RELA, dynamic.Value(DT_RELASZ));
  auto calls = dynamic.Table<Elf64_Rela>(DT_JMPREL, dynamic.Value(DT_PLTRELSZ));
  all.insert(all.end(), calls.begin(), calls.end());
  return all;
}

bool IsNamed(const std::vector<char>& names, uint64_t at, const std::string& name) {
  return at < names.size() && names.size() - at > name.size() &&
         std::memcmp(names.data() + at, name.c_str(), name.size() + 1) == 0;
}

}  // namespace

std::vector<LinkAddr> SlotsOfResolver(const elf::File& file, LinkAddr resolver) {
  std::vector<LinkAddr> slots;
  for (const auto& relocation : Relocations(DynamicSection(file))) {
    bool fits = ELF64_R_TYPE(relocation.r_info) == R_X86_64_IRELATIVE &&
                static_cast<uint64_t>(relocation.r_addend) == resolver.value;
    if (fits) slots.push_back({relocation.r_offset});
  }
  return slots;
}

std::vector<LinkAddr> SlotsOfImport(const elf::File& file, const std::string& name) {
  DynamicSection dynamic(file);
  auto relocations = Relocations(dynamic);
  std::erase_if(relocations, [](const Elf64_Rela& relocation) {
    auto type = ELF64_R_TYPE(relocation.r_info);
    return type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT;
  });
  uint64_t last = 0;
  for (const auto& relocation : relocations)
    last = std::max<uint64_t>(last, ELF64_R_SYM(relocation.r_info));
  auto symbols = dynamic.Table<Elf64_Sym>(DT_SYMTAB, (last + 1) * sizeof(Elf64_Sym));
  auto names = dynamic.Table<char>(DT_STRTAB, dynamic.Value(DT_STRSZ));
  std::vector<LinkAddr> slots;
  for (const auto& relocation : relocations) {
    uint64_t symbol = ELF64_R_SYM(relocation.r_info);
    if (symbol < symbols.size() && IsNamed(names, symbols[symbol].st_name, name)) {
      slots.push_back({relocation.r_offset});
    }
  }
  return slots;
}

}  // namespace probed::probe
