#pragma once
// Extents of functions as the unwind tables state them: what is left when symbols are stripped. LSB
// Core, "Exception Frames"; DWARF 4, section 6.4. Not through libdw: dwarf_next_cfi leaves
// augmentations and encoded addresses, the larger part, to its caller, and dwarf_getcfi_elf answers
// for one address at a time but cannot list what follows it.

#include <optional>
#include <span>
#include <vector>

#include "elf/frame.h"
#include "elf/headers.h"

namespace probed::elf {

class FrameIndex {
 public:
  // .eh_frame, found through PT_GNU_EH_FRAME or else its section. Entries that make no sense or lie
  // outside executable segments are left out.
  static FrameIndex Read(const Image& image, const Headers& headers,
                         std::span<const Segment> segments);

  const std::vector<Frame>& frames() const { return frames_; }  // ascending
  std::optional<Frame> Around(LinkAddr address) const;
  // The first one that starts after `address`.
  std::optional<Frame> After(LinkAddr address) const;

 private:
  std::vector<Frame> frames_;
};

}  // namespace probed::elf
