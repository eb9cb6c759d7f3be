#pragma once
// Reads all code from its first byte to its last, and again from every entry that this first
// reading took for the inside of an instruction.

#include <cstdint>
#include <vector>

#include "engine/arch/x86_64/flow/analysis.h"

namespace probed::arch::flow {

// An address that code makes a pointer of, so that a table may begin there.
struct TableBase {
  uint64_t address = 0;
  const Function* user = nullptr;  // null: code outside of any function
};

class Sweep {
 public:
  explicit Sweep(Analysis& analysis);

  // The linear reading: from each function's start, and through the gaps between functions.
  void ReadAll();
  // Code that begins inside instructions of the linear reading, such as the jump over a lock
  // prefix. Every byte is read at most once more. Call again when entries were added.
  void ReadFromEntries();
  // After the last entry was added: padding, and doubts about code that nothing enters.
  void FindDeadBytes();

  // Those that were met since the last call.
  std::vector<TableBase> TakeTableBases() { return std::move(bases_); }

 private:
  void ReadRange(const CodeRange& range, Function* function);
  void ReadOdd(uint64_t index);
  void Note(const Sketch& sketch, Function* function);
  void CheckBehind(uint64_t address, Function* function);

  Analysis& analysis_;
  AddressSet leaves_;  // where what stands above does not run into
  AddressSet odd_starts_;
  std::vector<uint64_t> pending_;  // entries to read from, unless read already
  std::vector<TableBase> bases_;
};

}  // namespace probed::arch::flow
