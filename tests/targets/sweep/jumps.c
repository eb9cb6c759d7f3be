// Jump tables, computed goto, indirect calls through memory, switch dispatch.
#include "sweep.h"

SWEPT int sw_switch(int opcode, int value) {
  switch (opcode) {
    case 0: return value + 3;
    case 1: return value * 5;
    case 2: return value ^ 0x55;
    case 3: return value - 7;
    case 4: return ~value;
    case 5: return value << 1;
    case 6: return (int)((unsigned)value >> 2);
    case 7: return value / 3;
    case 8: return value % 1000;
    default: return -value;
  }
}

SWEPT int sw_interpreter(const unsigned char* program, int value) {
  static const void* const kLabels[] = {&&add, &&shift, &&flip, &&stop};
  goto* kLabels[*program];
add:
  value += 17;
  goto* kLabels[*++program];
shift:
  value = (int)((unsigned)value << 3 | (unsigned)value >> 29);
  goto* kLabels[*++program];
flip:
  value ^= 0x0f0f;
  goto* kLabels[*++program];
stop:
  return value;
}

SWEPT int sw_negate(int value) { return -value; }
SWEPT int sw_square(int value) { return value * value; }
SWEPT int sw_halve(int value) { return value / 2; }
int (*volatile sw_table[3])(int) = {sw_negate, sw_square, sw_halve};

SWEPT int sw_dispatch(int rounds) {
  int value = 3;
  for (int i = 0; i < rounds; ++i) value = sw_table[i % 3](value) & 0xffff;
  return value;
}

SWEPT uint64_t sw_check_jumps(void) {
  static const unsigned char kProgram[] = {0, 1, 2, 0, 0, 1, 1, 2, 3};
  uint64_t hash = 0;
  int value = 1234;
  for (int i = 0; i < 22; ++i) {
    value = sw_switch(i % 11, value);
    hash = hash * 33 + (uint32_t)value;
  }
  hash = hash * 33 + (uint32_t)sw_interpreter(kProgram, 99);
  return hash * 33 + (uint32_t)sw_dispatch(13);
}
