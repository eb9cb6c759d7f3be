// The texts are of Debian's kernel 6.1.

#include "engine/kernel/kprobes.h"

#include <gtest/gtest.h>

namespace probed::kernel {
namespace {

TEST(KprobeList, TellsPlaceAndState) {
  const auto probes = ParseKprobeList(
      "ffffffffaa74a364  k  do_sys_openat2+0x14    [OPTIMIZED]\n"
      "ffffffffaa74a350  r  do_sys_openat2+0x0    [FTRACE]\n"
      "ffffffffaa74a350  k  do_sys_openat2+0x0    [DISABLED][FTRACE]\n"
      "ffffffffc0002000  k  dummy_xmit+0x0  dummy [GONE]\n"
      "ffffffffc0003000  k  ffffffffc0003000 \n"
      "no line\n");
  ASSERT_EQ(probes.size(), 5u);
  EXPECT_EQ(probes[0].address, 0xffffffffaa74a364u);
  EXPECT_EQ(probes[0].place, "do_sys_openat2+0x14");
  EXPECT_TRUE(probes[0].optimized);
  EXPECT_FALSE(probes[0].ftrace || probes[0].is_return || probes[0].disabled || probes[0].gone);
  EXPECT_TRUE(probes[1].is_return && probes[1].ftrace);
  EXPECT_TRUE(probes[2].disabled && probes[2].ftrace);
  EXPECT_EQ(probes[3].module, "dummy");
  EXPECT_TRUE(probes[3].gone);
  EXPECT_EQ(probes[4].place, "ffffffffc0003000");
  EXPECT_EQ(probes[4].module, "");
}

TEST(KprobeBlacklist, TellsRanges) {
  const auto ranges = ParseKprobeBlacklist(
      "0xffffffffab000990-0xffffffffab0009b0\tasm_exc_divide_error\n"
      "0x-0x1\tbad\n"
      "bad\n");
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_EQ(ranges[0].begin, 0xffffffffab000990u);
  EXPECT_EQ(ranges[0].end, 0xffffffffab0009b0u);
  EXPECT_EQ(ranges[0].symbol, "asm_exc_divide_error");
}

TEST(Kprobes, AreNotWhereDebugfsIsNot) {
  const auto kprobes = ReadKprobes({.directory = "/proc/self/no_such"});
  ASSERT_FALSE(kprobes.ok());
  EXPECT_EQ(kprobes.error().reason, "NO_KPROBES_DIRECTORY");
}

}  // namespace
}  // namespace probed::kernel
