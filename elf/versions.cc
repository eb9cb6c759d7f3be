#include "elf/versions.h"

#include "elf/byte_reader.h"

namespace probed::elf {
namespace {

constexpr int kMaxRecords = 1 << 15;  // indices have 15 bits; also ends chains that loop

class VersionReader {
 public:
  explicit VersionReader(const SymbolTable& table) : table_(table) {}

  std::unordered_map<unsigned, std::string_view> Read() {
    ReadDefinitions();
    ReadNeeds();
    return std::move(names_);
  }

 private:
  void ReadDefinitions() {
    GElf_Verdef definition{};
    GElf_Verdaux first;
    uint32_t at = 0;
    for (int count = 0; count < kMaxRecords; ++count, at += definition.vd_next) {
      if (::gelf_getverdef(table_.definitions, Offset(at), &definition) == nullptr) return;
      uint32_t first_at = at + definition.vd_aux;
      if (::gelf_getverdaux(table_.definitions, Offset(first_at), &first) == nullptr) return;
      // The base definition names the file, not a version.
      bool is_base = (definition.vd_flags & VER_FLG_BASE) != 0;
      if (!is_base) Add(definition.vd_ndx, first.vda_name);
      if (definition.vd_next == 0) return;
    }
  }

  void ReadNeeds() {
    GElf_Verneed file{};
    GElf_Vernaux need{};
    int count = 0;
    for (uint32_t at = 0; count < kMaxRecords; at += file.vn_next) {
      if (::gelf_getverneed(table_.needs, Offset(at), &file) == nullptr) return;
      for (uint32_t need_at = at + file.vn_aux; count++ < kMaxRecords; need_at += need.vna_next) {
        if (::gelf_getvernaux(table_.needs, Offset(need_at), &need) == nullptr) break;
        Add(need.vna_other, need.vna_name);
        if (need.vna_next == 0) break;
      }
      if (file.vn_next == 0) return;
    }
  }

  // libelf refuses negative offsets and those outside of the data.
  static int Offset(uint32_t value) { return static_cast<int>(value); }

  void Add(unsigned index, uint32_t name) {
    names_.emplace(index & ~kHiddenVersion, StringAt(BytesOf(table_.strings), name));
  }

  const SymbolTable& table_;
  std::unordered_map<unsigned, std::string_view> names_;
};

}  // namespace

std::unordered_map<unsigned, std::string_view> ReadVersionNames(const SymbolTable& table) {
  return VersionReader(table).Read();
}

}  // namespace probed::elf
