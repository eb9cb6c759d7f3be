#pragma once
// A hit made of tables: registers and a few pieces of memory.

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/lang/fetch_context.h"

namespace probed::lang::testing {

class FakeContext : public FetchContext {
 public:
  RegisterFile regs;
  std::map<int, VectorRegister> vectors;
  std::string task_comm = "kgrbin";
  uint64_t base = 0;
  std::vector<uint64_t> captured;
  size_t reads = 0;

  void Map(uint64_t address, std::string_view bytes) { memory_[address] = bytes; }
  // With its terminator.
  void MapString(uint64_t address, std::string_view text) {
    memory_[address].assign(text).push_back('\0');
  }
  template <class T>
  void MapObject(uint64_t address, const T& object) {
    Map(address, {reinterpret_cast<const char*>(&object), sizeof(object)});
  }

  const RegisterFile& registers() const override { return regs; }
  size_t ReadMemory(uint64_t address, std::span<std::byte> out) override {
    ++reads;
    size_t done = 0;
    while (done < out.size()) {
      const size_t got = ReadPiece(address + done, out.subspan(done));
      if (got == 0) break;
      done += got;
    }
    return done;
  }
  bool ReadVector(int number, VectorRegister& out) override {
    const auto found = vectors.find(number);
    if (found == vectors.end()) return false;
    out = found->second;
    return true;
  }
  std::string_view comm() override { return task_comm; }
  uint64_t file_base() const override { return base; }
  std::span<const uint64_t> entry_arguments() const override { return captured; }

 private:
  size_t ReadPiece(uint64_t address, std::span<std::byte> out) {
    auto piece = memory_.upper_bound(address);
    if (piece == memory_.begin()) return 0;
    --piece;
    const uint64_t skip = address - piece->first;
    if (skip >= piece->second.size()) return 0;
    const size_t length = std::min<size_t>(out.size(), piece->second.size() - skip);
    std::memcpy(out.data(), piece->second.data() + skip, length);
    return length;
  }

  std::map<uint64_t, std::string> memory_;
};

}  // namespace probed::lang::testing
