#pragma once
// The hit of probe_me() in tests/data/conformance/target.c that the rows were recorded from.

#include <cstdint>

#include "tests/lang/fake_context.h"

namespace probed::lang::testing {

// `gs` of target.c, with made-up addresses for its strings.
struct Gs {
  uint8_t u8 = 0xfe;
  int8_t s8 = -2;
  uint16_t u16 = 0xfffe;
  int16_t s16 = -2;
  uint32_t u32 = 0xfffffffe;
  int32_t s32 = -2;
  uint64_t u64 = 0xfffffffffffffffe;
  int64_t s64 = -2;
  uint64_t str = 0x10000;
  uint64_t strs[4] = {0x10100, 0x10200, 0x10300, 0};
  char arr[8] = {'a', 'b', 'c', 'd', 0, 'x', 'y', 'z'};
  char ch = 'Q';
};

inline FakeContext RecordedHit() {
  FakeContext context;
  context.MapObject(0x20000, Gs{});
  context.MapString(0x10000, "hello");
  context.MapString(0x10100, "one");
  context.MapString(0x10200, "two");
  context.MapString(0x10300, "three");
  context.MapString(0x30000, "world");
  context.regs[Reg::kSi] = 0x20000;
  context.regs[Reg::kDx] = 0x30000;
  context.regs[Reg::kCx] = 0x1234567890abcdef;
  context.regs[Reg::kOrigAx] = ~uint64_t{0};
  return context;
}

}  // namespace probed::lang::testing
