#pragma once
// Where a file's code walks stacks, or copies a return address, and so must be shown real ones. Any
// thread.

#include <vector>

#include "base/address.h"
#include "elf/file.h"
#include "engine/probe/site.h"

namespace probed::probe {

struct UnwindPoint {
  FileOffset offset;
  Hook hook;
};

// Level I of the C++ ABI for exceptions, where a handler begins, and where a walk that only looks
// ends; swapcontext(3), whose context may be gone on with when nobody waits for that return, or
// nobody traces, any more. By symbol, so a stripped file with those linked into it is not
// recognised.
std::vector<UnwindPoint> FindUnwindPoints(const elf::File& file);

// Whether a walk of libgcc's unwinder begins in the function there (uw_init_context_1): with the
// return address of its own, so that one must stay.
bool BeginsWalk(const elf::File& file, LinkAddr function);

}  // namespace probed::probe
