#include "engine/sys/process_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace probed::sys {
namespace {

constexpr size_t kPage = 4096;

RemoteAddr AddressOf(const void* pointer) {
  return {reinterpret_cast<uint64_t>(pointer)};
}

class ProcessMemoryTest : public testing::Test {
 protected:
  ProcessMemoryTest() : memory_(*ProcessMemory::Open(::getpid())) {
    pages_ = static_cast<char*>(
        ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memset(pages_, 'x', 2 * kPage);
    ::munmap(pages_ + kPage, kPage);
  }
  ~ProcessMemoryTest() override { ::munmap(pages_, kPage); }

  ProcessMemory memory_;
  char* pages_;
};

TEST_F(ProcessMemoryTest, ReadsUpToTheFirstUnreadableByte) {
  std::array<std::byte, 64> bytes{};
  EXPECT_EQ(memory_.ReadSome(AddressOf(pages_ + kPage - 10), bytes), 10u);
  EXPECT_EQ(bytes[9], std::byte{'x'});
  EXPECT_EQ(memory_.ReadSome(RemoteAddr{8}, bytes), 0u);
  Status status = memory_.Read(AddressOf(pages_ + kPage - 10), bytes);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().reason, "MEMORY_UNREADABLE");
}

TEST_F(ProcessMemoryTest, WritesToReadOnlyMemory) {
  ::mprotect(pages_, kPage, PROT_READ);
  std::array<std::byte, 3> bytes = {std::byte{'a'}, std::byte{'b'}, std::byte{'c'}};
  ASSERT_TRUE(memory_.Write(AddressOf(pages_ + 5), bytes, 0).ok());
  EXPECT_EQ(std::string(pages_ + 4, 5), "xabcx");
}

TEST_F(ProcessMemoryTest, WritesAsTheProgramCouldOrNotAtAll) {
  std::array<std::byte, 4> bytes = {std::byte{'a'}, std::byte{'b'}, std::byte{'c'}, std::byte{'d'}};
  ASSERT_TRUE(memory_.WriteAsProgram(AddressOf(pages_), bytes));
  EXPECT_EQ(std::string(pages_, 5), "abcdx");
  // Over the end: the first half must not stay.
  EXPECT_FALSE(memory_.WriteAsProgram(AddressOf(pages_ + kPage - 2), bytes));
  EXPECT_EQ(std::string(pages_ + kPage - 2, 2), "xx");
  ASSERT_NE(::mmap(pages_ + kPage, kPage, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
            MAP_FAILED);
  ASSERT_TRUE(memory_.WriteAsProgram(AddressOf(pages_ + kPage - 2), bytes));
  EXPECT_EQ(std::string(pages_ + kPage - 2, 4), "abcd");
  // The second half must not stay when the first page refuses.
  pages_[kPage] = pages_[kPage + 1] = 'y';
  ::mprotect(pages_, kPage, PROT_READ);
  EXPECT_FALSE(memory_.WriteAsProgram(AddressOf(pages_ + kPage - 2), bytes));
  EXPECT_EQ(std::string(pages_ + kPage - 2, 4), "abyy");
  ::munmap(pages_ + kPage, kPage);
}

TEST_F(ProcessMemoryTest, WriteToNothingSaysWhere) {
  std::array<std::byte, 1> byte{};
  Status status = memory_.Write(AddressOf(pages_ + kPage), byte, 0);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().reason, "MEMORY_UNWRITABLE");
}

}  // namespace
}  // namespace probed::sys
