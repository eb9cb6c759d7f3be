#pragma once
// What addresses mean that stand in records: /proc/kallsyms, and the strings that the kernel's
// print formats refer to (printk_formats). A snapshot; thread-safe.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace probed::kernel {

class Symbols {
 public:
  struct Symbol {
    uint64_t address = 0;
    std::string name;
    std::string module;  // empty: the kernel itself
  };

  // What may not be read is left out: then addresses are numbers. `kallsyms` and `formats` are the
  // texts of /proc/kallsyms and of tracefs's printk_formats.
  static std::shared_ptr<const Symbols> Parse(std::string_view kallsyms, std::string_view formats);
  static std::shared_ptr<const Symbols> Load(const std::string& tracefs_directory);

  // The last symbol at or below, of several there the first; null: there is none.
  const Symbol* Find(uint64_t address) const;
  // Between two symbols of the kernel itself: not of a module, which may come or go.
  bool IsInCore(uint64_t address) const;
  // Up to the next one; 0: there is none.
  uint64_t SizeOf(const Symbol& symbol) const;
  const std::map<uint64_t, std::string>& strings() const { return strings_; }

 private:
  std::vector<Symbol>::const_iterator Above(uint64_t address) const;

  std::vector<Symbol> symbols_;
  std::map<uint64_t, std::string> strings_;
};

}  // namespace probed::kernel
