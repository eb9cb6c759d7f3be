#include "engine/detour/string_search.h"

#include "engine/detour/body_registers.h"

namespace probed::detour {

using namespace Xbyak::util;  // registers

void LoadHighBits(Assembler& a) {
  a.mov(kHighBits, 0x8080808080808080);
}

void FindNul(Assembler& a, Label& found) {
  a.mov(rcx, -0x0101010101010101);
  a.add(rcx, rax);
  a.not_(rax);
  a.and_(rcx, rax);
  a.and_(rcx, kHighBits);
  a.jnz(found);
}

}  // namespace probed::detour
