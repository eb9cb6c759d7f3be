#pragma once
// Xbyak with what every part of a detour needs: the program's registers, loads that may fault, and
// a buffer of its own. The only file that includes Xbyak; no exception leaves it.

#define XBYAK_NO_EXCEPTION
#include <xbyak/xbyak.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/detour/frame.h"

namespace probed::detour {

// A place in the code where jumps and loads that fault go on. Not copied: Xbyak gives a label its
// identity at the first jump.
class Label : public Xbyak::Label {
 public:
  Label() = default;
  Label(const Label&) = delete;
  Label& operator=(const Label&) = delete;

  // Something leads there.
  bool is_used() const { return getId() != 0 || !loads_.empty(); }

 private:
  friend class Assembler;
  std::vector<uint32_t> loads_;  // before it is placed
  std::optional<uint32_t> offset_;
};

class Assembler : public Xbyak::CodeGenerator {
 public:
  Assembler(std::span<uint8_t> buffer, const Frame& frame)
      : Xbyak::CodeGenerator(buffer.size(), buffer.data()), frame_(frame) {
    Xbyak::ClearError();
  }

  const Frame& frame() const { return frame_; }
  uint32_t here() const { return static_cast<uint32_t>(getSize()); }
  Xbyak::Address Slot(uint32_t offset) { return qword[rsp + offset]; }

  // The next instruction is a load that may fault; the thread then goes on at `resume`.
  void MayFault(Label& resume);
  void L(Label& label);
  // Emits `code`, a path that is seldom taken, where EmitLater is called.
  void Later(std::function<void()> code) { later_.push_back(std::move(code)); }
  std::vector<std::function<void()>> TakeLater() { return std::exchange(later_, {}); }
  // to = the program's register as it was at the site, `site` being its ip.
  void LoadProgramRegister(const Xbyak::Reg64& to, lang::Reg reg, uint64_t site);
  // to = what stands at address + index. Changes rdx where the address is not a low one.
  void LoadAt(const Xbyak::Reg64& to, uint64_t address, const Xbyak::Reg64& index);
  void ReadFsBase(const Xbyak::Reg64& to);
  void ReadProcessorId(const Xbyak::Reg64& to);

  // Complete once every label is placed.
  std::vector<FixUp> TakeFixUps();

 private:
  const Frame& frame_;
  std::vector<FixUp> fix_ups_;
  std::vector<std::function<void()>> later_;
};

}  // namespace probed::detour
