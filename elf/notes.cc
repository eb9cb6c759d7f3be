#include "elf/notes.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "elf/byte_reader.h"

namespace probed::elf {
namespace {

constexpr uint64_t kMaxNoteBytes = 1 << 20;
constexpr size_t kMaxTables = 64;
constexpr uint32_t kGoBuildIdType = 4;  // ELF_NOTE_GOBUILDID_TAG of cmd/internal/buildid

// Of the program headers, else of the sections.
std::vector<Elf_Data*> FindTables(const Handle& elf, const Headers& headers) {
  std::vector<Elf_Data*> tables;
  auto add = [&](uint64_t offset, uint64_t size, uint64_t alignment) {
    if (size == 0 || tables.size() == kMaxTables) return;
    // Padding is to 4 bytes, except where aligned to 8 (gABI for .note.gnu.property).
    Elf_Type type = alignment == 8 ? ELF_T_NHDR8 : ELF_T_NHDR;
    tables.push_back(elf.Data(offset, std::min(size, kMaxNoteBytes), type));
  };
  for (const Elf64_Phdr& entry : headers.program) {
    if (entry.p_type == PT_NOTE) add(entry.p_offset, entry.p_filesz, entry.p_align);
  }
  if (!tables.empty()) return tables;
  for (const auto& [name, header] : headers.sections) {
    if (header.sh_type == SHT_NOTE) add(header.sh_offset, header.sh_size, header.sh_addralign);
  }
  return tables;
}

}  // namespace

Notes ReadNotes(const Image& image, const Headers& headers) {
  Handle elf(image);
  Notes notes;
  GElf_Nhdr header;
  size_t name_at = 0, text_at = 0;
  for (Elf_Data* table : FindTables(elf, headers)) {
    for (size_t at = 0; (at = ::gelf_getnote(table, at, &header, &name_at, &text_at)) != 0;) {
      std::string_view name = StringAt(BytesOf(table), name_at);
      if (name == "Go" && header.n_type == kGoBuildIdType) notes.has_go_id = true;
      if (name != "GNU" || header.n_type != NT_GNU_BUILD_ID || !notes.build_id.empty()) continue;
      auto id = BytesOf(table).subspan(text_at, header.n_descsz);
      notes.build_id = fmt::format("{:02x}", fmt::join(id, ""));
    }
  }
  return notes;
}

bool LooksLikeGo(const Notes& notes, const Headers& headers) {
  if (notes.has_go_id) return true;
  for (const char* name : {".note.go.buildid", ".go.buildinfo", ".gopclntab"}) {
    if (headers.FindSection(name) != nullptr) return true;
  }
  return false;
}

}  // namespace probed::elf
