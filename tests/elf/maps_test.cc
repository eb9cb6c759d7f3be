#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include "elf/module_map.h"

namespace probed::elf {
namespace {

constexpr char kText[] =
    "00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/dbus daemon\n"
    "00651000-00652000 r--p 00051000 08:02 173521      /usr/bin/dbus daemon\n"
    "00652000-00655000 rw-p 00000000 00:00 0 \n"
    "00e03000-00e24000 rw-p 00000000 00:00 0           [heap]\n"
    "10000000-10001000 r-xs 00002000 103:100001 7       /tmp/gone (deleted)\n"
    "10002000-10003000 r-xp 00000000 00:01 2049        /memfd:jit code (deleted)\n"
    "10004000-10005000 r--p 00000000 08:02 99          /tmp/two\\012lines\\x (deleted) (deleted)\n"
    "7f0000000000-7f0000001000 r-xp 00003000 08:02 173521 /usr/bin/dbus daemon\n"
    "7ffd5f9be000-7ffd5f9df000 rw-p 00000000 00:00 0   [stack]\n"
    "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n";

ModuleMap Parsed() {
  auto mappings = ParseMaps(kText);
  EXPECT_TRUE(mappings.ok()) << mappings.error().ToString();
  return ModuleMap(*std::move(mappings));
}

TEST(ParseMaps, ReadsEveryField) {
  auto mappings = *ParseMaps(kText);
  ASSERT_EQ(mappings.size(), 10u);
  EXPECT_EQ(mappings[0].path, "/usr/bin/dbus daemon");
  EXPECT_EQ(mappings[0].device, makedev(8, 2));
  EXPECT_EQ(mappings[0].inode, 173521u);
  EXPECT_TRUE(mappings[0].readable && mappings[0].executable);
  EXPECT_FALSE(mappings[0].writable || mappings[0].shared || mappings[0].deleted);
  EXPECT_EQ(mappings[1].offset.value, 0x51000u);
  EXPECT_EQ(mappings[2].path, "");
  EXPECT_EQ(mappings[3].path, "[heap]");
  EXPECT_EQ(mappings[4].device, makedev(0x103, 0x100001));
  EXPECT_EQ(mappings[4].path, "/tmp/gone");
  EXPECT_TRUE(mappings[4].deleted && mappings[4].shared);
  EXPECT_EQ(mappings[5].path, "/memfd:jit code");
  EXPECT_EQ(mappings[6].path, "/tmp/two\nlines\\x (deleted)");
  EXPECT_EQ(mappings[9].start.value, 0xffffffffff600000u);
}

TEST(ParseMaps, RefusesWhatTheKernelDoesNotWrite) {
  for (const char* line :
       {"nonsense", "1000-2000", "2000-1000 r-xp 0 0:0 0", "1000-2000 r-xp 0 0 0", "\n",
        "1000-2000 r-xp 00000000 08:02", "1000-20000000000000000 r-xp 0 0:0 0", "1000-2000 r-"}) {
    auto mappings = ParseMaps(line);
    ASSERT_FALSE(mappings.ok()) << line;
    EXPECT_EQ(mappings.error().reason, "MAPS_MALFORMED");
  }
  EXPECT_TRUE(ParseMaps("").ok());
}

TEST(ModuleMap, GroupsByFileAndLeavesAnonymousMemoryOut) {
  ModuleMap map = Parsed();
  EXPECT_EQ(map.modules().size(), 7u);
  const Module* program = map.FindFile(makedev(8, 2), 173521);
  ASSERT_NE(program, nullptr);
  EXPECT_EQ(program->mappings.size(), 3u);
  EXPECT_EQ(map.FindFile(makedev(8, 3), 173521), nullptr);
  EXPECT_EQ(map.FindFile(0, 0), nullptr);
  EXPECT_EQ(map.FindPath("/usr/bin/dbus daemon"), program);
  EXPECT_EQ(map.FindPath("/tmp/gone"), nullptr) << "the file of that name is another one now";
}

TEST(ModuleMap, LocatesInExecutableMappingsOnly) {
  ModuleMap map = Parsed();
  uint64_t device = makedev(8, 2);
  auto twice = map.Locate(device, 173521, {0x3010});
  ASSERT_EQ(twice.size(), 2u);
  EXPECT_EQ(twice[0].value, 0x403010u);
  EXPECT_EQ(twice[1].value, 0x7f0000000010u);
  EXPECT_EQ(map.Locate(device, 173521, {0x51fff}).size(), 1u);
  EXPECT_TRUE(map.Locate(device, 173521, {0x52000}).empty());
  EXPECT_TRUE(map.Locate(device, 1, {0x3010}).empty());
}

TEST(ModuleMap, FindsTheMappingOfAnAddress) {
  ModuleMap map = Parsed();
  EXPECT_EQ(map.At({0x3fffff}), nullptr);
  EXPECT_EQ(map.At({0x400000})->path, "/usr/bin/dbus daemon");
  EXPECT_EQ(map.At({0x451fff})->offset.value, 0u);
  EXPECT_EQ(map.At({0x452000}), nullptr);
  EXPECT_EQ(map.At({0xffffffffff600fff})->path, "[vsyscall]");
}

}  // namespace
}  // namespace probed::elf
