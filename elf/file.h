#pragma once
// One ELF file, read as hostile input: every size and offset is checked against the file. Immutable
// after Open, so shareable between threads. System V gABI, GNU extensions.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/result.h"

namespace probed::elf {

struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  std::string build_id;  // hex; empty when there is no note
  bool operator==(const FileIdentity&) const = default;
};

struct Segment {            // one PT_LOAD
  LinkAddr address;
  FileOffset offset;
  uint64_t file_size = 0;
  uint64_t memory_size = 0;
  bool readable = false, writable = false, executable = false;
};

struct Symbol {
  std::string name;
  std::string version;      // "GLIBC_2.14"; default_version tells @@ from @
  bool default_version = true;
  LinkAddr address;
  uint64_t size = 0;        // 0 = unknown (hand-written assembly)
  bool ifunc = false;
  bool defined = true;      // false: an import
};

struct FunctionBounds {
  LinkAddr start;
  uint64_t size = 0;
  std::string symbol;       // may be empty (from an FDE)
};

class File {
 public:
  // `path` may be /proc/PID/exe or /proc/PID/root/...; debuglink and build-id files are looked for
  // beside it and under `debug_root`/usr/lib/debug. NOT_ELF, ELF_MALFORMED, ELF_CLASS (32-bit).
  static Result<std::shared_ptr<const File>> Open(const std::string& path,
                                                  const std::string& root = "");
  ~File();

  const std::string& path() const;
  const FileIdentity& identity() const;
  bool position_independent() const;        // ET_DYN
  LinkAddr entry() const;
  std::string interpreter() const;
  bool is_go() const;
  const std::vector<Segment>& segments() const;
  std::optional<FileOffset> ToOffset(LinkAddr address) const;
  std::optional<LinkAddr> ToLinkAddr(FileOffset offset) const;  // prefers executable segments
  bool IsExecutable(FileOffset offset) const;
  // Bytes of the file at `offset`, up to `size`, empty past the end.
  std::span<const uint8_t> Bytes(FileOffset offset, size_t size) const;

  // .symtab, .dynsym, .gnu_debugdata and a separate debug file merged, functions only, sorted by
  // address; loaded on first use.
  const std::vector<Symbol>& functions() const;
  // Exact (mangled) name first, then demangled; "name@VERSION" selects. Errors: SYMBOL_NOT_FOUND with
  // metadata "suggestions" (comma-separated near names) and, for an import, reason
  // SYMBOL_IS_IMPORT; SYMBOL_AMBIGUOUS with the choices.
  Result<Symbol> FindFunction(const std::string& name) const;
  std::vector<Symbol> AliasesAt(LinkAddr address) const;
  // The function that holds `address`: symbols, else FDEs of .eh_frame.
  std::optional<FunctionBounds> FunctionAt(LinkAddr address) const;

 private:
  struct State;
  explicit File(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

std::string Demangle(const std::string& name);  // the name itself when it is not mangled

}  // namespace probed::elf
