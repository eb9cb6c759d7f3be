#pragma once
// Where the return address of a call is, as the unwind tables have it for one instruction. DWARF 4,
// section 6.4.2; LSB Core, "Exception Frames".

#include <span>

#include "elf/frame.h"
#include "elf/image.h"
#include "elf/segment.h"

namespace probed::elf {

enum class ReturnAddress {
  kUnknown,
  kOnTop,      // of the stack, as when a function begins
  kElsewhere,  // or there is none
};

// `frame` is the one around `address`.
ReturnAddress FindReturnAddress(const Image& image, std::span<const Segment> segments,
                                const Frame& frame, LinkAddr address);

}  // namespace probed::elf
