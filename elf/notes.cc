#include "elf/notes.h"

#include <algorithm>

#include "elf/byte_reader.h"

namespace probed::elf {
namespace {

constexpr uint64_t kMaxNoteBytes = 1 << 20;
constexpr size_t kMaxNotes = 1024;
constexpr uint32_t kGoBuildIdType = 4;  // ELF_NOTE_GOBUILDID_TAG of cmd/internal/buildid

size_t Padding(size_t size, size_t alignment) {
  return (alignment - size % alignment) % alignment;
}

// Padding is to 4 bytes, except in segments aligned to 8 (gABI for .note.gnu.property).
void ParseNotes(std::span<const uint8_t> bytes, size_t alignment, std::vector<Note>* notes) {
  ByteReader reader(bytes);
  while (reader.left() > 0 && notes->size() < kMaxNotes) {
    auto header = reader.Take<Elf64_Nhdr>();
    auto name = reader.TakeBytes(header.n_namesz);
    reader.Skip(std::min(Padding(header.n_namesz, 4), reader.left()));
    auto description = reader.TakeBytes(header.n_descsz);
    if (!reader.ok()) return;
    reader.Skip(std::min(Padding(header.n_descsz, alignment), reader.left()));
    std::string text(name.begin(), name.end());
    notes->push_back({.name = text.substr(0, text.find('\0')),
                      .type = header.n_type,
                      .description = {description.begin(), description.end()}});
  }
}

void ReadNoteRange(const Image& image, uint64_t offset, uint64_t size, uint64_t alignment,
                   std::vector<Note>* notes) {
  std::vector<uint8_t> bytes = image.Read(offset, std::min(size, kMaxNoteBytes));
  ParseNotes(bytes, alignment == 8 ? 8 : 4, notes);
}

}  // namespace

std::vector<Note> ReadNotes(const Image& image, const Headers& headers) {
  std::vector<Note> notes;
  for (const Elf64_Phdr& entry : headers.program) {
    if (entry.p_type != PT_NOTE) continue;
    ReadNoteRange(image, entry.p_offset, entry.p_filesz, entry.p_align, &notes);
  }
  if (!notes.empty()) return notes;
  for (const Section& section : headers.sections) {
    if (section.header.sh_type != SHT_NOTE) continue;
    ReadNoteRange(image, section.header.sh_offset, section.header.sh_size,
                  section.header.sh_addralign, &notes);
  }
  return notes;
}

std::string FindBuildId(std::span<const Note> notes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const Note& note : notes) {
    if (note.name != "GNU" || note.type != NT_GNU_BUILD_ID) continue;
    for (uint8_t byte : note.description) {
      hex += kDigits[byte >> 4];
      hex += kDigits[byte & 15];
    }
    break;
  }
  return hex;
}

bool LooksLikeGo(std::span<const Note> notes, const Headers& headers) {
  auto is_go_note = [](const Note& note) {
    return note.name == "Go" && note.type == kGoBuildIdType;
  };
  if (std::any_of(notes.begin(), notes.end(), is_go_note)) return true;
  for (const char* name : {".note.go.buildid", ".go.buildinfo", ".gopclntab"}) {
    if (headers.FindSection(name) != nullptr) return true;
  }
  return false;
}

}  // namespace probed::elf
