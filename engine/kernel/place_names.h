#pragma once
// What addresses of kernel code are called, as the kernel's %pS and %ps have it. Modules may be
// loaded at any time: where an address may be one of theirs, kallsyms is read again if the list of
// modules has changed. One thread at a time.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "engine/kernel/symbols.h"

namespace probed::kernel {

class PlaceNames {
 public:
  using Load = std::function<std::shared_ptr<const Symbols>()>;
  using ListModules = std::function<std::string()>;
  // `load` reads the symbols of now, `modules` whatever tells that others are loaded by now.
  PlaceNames(Load load, ListModules modules)
      : load_(std::move(load)), list_modules_(std::move(modules)) {}

  // "vfs_read+0x0/0x2f0", with " [MODULE]"; the number where there is no symbol. Valid until the
  // next call of either.
  const std::string& WithOffset(uint64_t address);
  // "vfs_read", the function that an address is in.
  const std::string& Bare(uint64_t address);

 private:
  struct Name {
    std::string with_offset, bare;
  };
  const Name& Find(uint64_t address);
  Name Make(uint64_t address) const;
  void Refresh();

  Load load_;
  ListModules list_modules_;
  std::string modules_;
  std::shared_ptr<const Symbols> symbols_;
  std::unordered_map<uint64_t, Name> known_;
};

}  // namespace probed::kernel
