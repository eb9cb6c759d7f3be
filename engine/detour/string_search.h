#pragma once
// The search for the NUL that ends a string, eight bytes at a time.

#include "engine/detour/assembler.h"

namespace probed::detour {

// What FindNul needs in kHighBits.
void LoadHighBits(Assembler& a);
// rax: a word. Jumps with the lowest set bit of rcx in the byte of the first NUL, or falls through;
// changes rax.
void FindNul(Assembler& a, Label& found);

}  // namespace probed::detour
