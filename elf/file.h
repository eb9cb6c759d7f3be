#pragma once
// One ELF file, read as hostile input: every size and offset is checked against the file, and bytes
// are read on demand with pread, never mapped, because a file cut short under a mapping raises
// SIGBUS. Immutable after Open (lazy parts load once), so shareable between threads. The descriptor
// stays open: a replaced or deleted file is still the one that was opened. System V gABI, GNU
// extensions, 64-bit little-endian only.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/result.h"
#include "elf/call_frame.h"
#include "elf/demangle.h"
#include "elf/frame.h"
#include "elf/segment.h"
#include "elf/symbol.h"

namespace probed::elf {

struct FileIdentity {
  uint64_t device = 0;  // stat's st_dev; /proc/PID/maps may differ, see module_map.h
  uint64_t inode = 0;
  std::string build_id;  // hex; empty when there is no note
  bool operator==(const FileIdentity&) const = default;
};

class File {
 public:
  // `path` may be /proc/PID/exe or /proc/PID/root/...; debuglink and build-id files are looked for
  // beside it and under `root`/usr/lib/debug. Symbolic links below `root` resolve inside it. `name`
  // is what messages call the file, as the target sees it; empty: `path`.
  // NOT_ELF, ELF_MALFORMED, ELF_CLASS (not a 64-bit little-endian file), or open's errno.
  static Result<std::shared_ptr<const File>> Open(const std::string& path,
                                                  const std::string& root = "",
                                                  const std::string& name = "");
  ~File();

  const std::string& name() const;
  const FileIdentity& identity() const;
  bool position_independent() const;  // ET_DYN
  LinkAddr entry() const;
  std::string interpreter() const;  // empty: static
  // Built by the Go toolchain, told by its notes and sections.
  bool is_go() const;
  const std::vector<Segment>& segments() const;
  std::optional<FileOffset> ToOffset(LinkAddr address) const;
  std::optional<LinkAddr> ToLinkAddr(FileOffset offset) const;  // prefers executable segments
  bool IsExecutable(FileOffset offset) const;
  // A copy of the file's bytes at `offset`: up to `size`, fewer at the end, empty past it.
  std::vector<uint8_t> Bytes(FileOffset offset, size_t size) const;

  // .symtab, .dynsym, .gnu_debugdata and a separate debug file merged; functions defined here only,
  // sorted by address, then name; loaded on first use.
  const std::vector<Symbol>& functions() const;
  // Names taken from other files, functions and data.
  const std::vector<Symbol>& imports() const;
  // Exact (mangled) name first, then demangled, with or without parameters; "name@VERSION" selects.
  // Errors: SYMBOL_NOT_FOUND with metadata "suggestions" (comma-separated near names),
  // SYMBOL_IS_IMPORT, SYMBOL_AMBIGUOUS with metadata "choices" (comma-separated; each selects one
  // when given here or, as "0x...", is a file offset).
  Result<Symbol> FindFunction(const std::string& name) const;
  // A variable such as _r_debug, by exact name. Same errors.
  Result<Symbol> FindObject(const std::string& name) const;
  // Functions whose symbol name or demangled name matches the glob (elf/glob.h), at most `limit`.
  std::vector<Symbol> SearchFunctions(const std::string& pattern, size_t limit) const;
  std::vector<Symbol> AliasesAt(LinkAddr address) const;
  // The function that holds `address`: symbols, else FDEs of .eh_frame.
  std::optional<FunctionBounds> FunctionAt(LinkAddr address) const;
  // How long the function at `start` is by each table that says so; they may differ.
  std::vector<SizeClaim> SizesAt(LinkAddr start) const;
  // .eh_frame's FDEs, ascending.
  const std::vector<Frame>& frames() const;
  // By the FDE around `address`.
  ReturnAddress ReturnAddressAt(LinkAddr address) const;
  // See relocations.h; read anew at each call.
  std::vector<LinkAddr> RelocatedAddresses() const;

 private:
  struct State;
  explicit File(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace probed::elf
