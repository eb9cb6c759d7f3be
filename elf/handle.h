#pragma once
// libelf's view of a file. A handle caches what it hands out and must not be shared between
// threads, so each load opens its own; libelf's data ends with it.

#include <gelf.h>

#include <memory>
#include <span>

#include "elf/image.h"

namespace probed::elf {

class Handle {
 public:
  // Borrows the image.
  explicit Handle(const Image& image);

  // Null when libelf refuses the file.
  Elf* get() const { return elf_.get(); }

  // `size` bytes at `offset` as records of `type`, for gelf_get*, which check the index. Null,
  // which they accept, unless the image holds them. It takes a range rather than an Elf_Scn because
  // what PT_DYNAMIC points to needs no section.
  Elf_Data* Data(uint64_t offset, uint64_t size, Elf_Type type) const;

 private:
  struct End {
    void operator()(Elf* elf) const { ::elf_end(elf); }
  };
  const Image& image_;
  std::unique_ptr<Elf, End> elf_;
};

// Empty for null.
std::span<const uint8_t> BytesOf(const Elf_Data* data);

}  // namespace probed::elf
