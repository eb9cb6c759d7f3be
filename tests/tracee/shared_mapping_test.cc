#include "engine/tracee/shared_mapping.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cstring>
#include <filesystem>
#include <span>
#include <string>

#include "engine/sys/proc.h"
#include "engine/tracee/remote_call.h"
#include "tests/tracee/tracer_test.h"

namespace probed::tracee {
namespace {

using Access = SharedMapping::Access;
constexpr size_t kSize = 8192;

size_t OpenFiles(pid_t pid) {
  std::filesystem::directory_iterator files("/proc/" + std::to_string(pid) + "/fd");
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

Result<SharedMapping> Make(Stopped& stopped, Access access, RemoteAddr at = {}) {
  return SharedMapping::Create(stopped,
                               {.name = "probed-test", .size = kSize, .access = access, .at = at});
}

Status Try(Stopped& stopped) {
  PROBED_TRY(SharedMapping mapping, Make(stopped, Access::kTargetReads));
  return mapping.Unmap(stopped);
}

std::string ReadText(Stopped& stopped, RemoteAddr address) {
  char text[16] = {};
  if (!stopped.ReadMemory(address, std::as_writable_bytes(std::span(text, 15))).ok()) return "";
  return text;
}

class SharedMappingTest : public TracerTest {
 protected:
  SharedMappingTest() : puppet_("counter", {"1", "10"}) {
    puppet_.ReadLine();
    EXPECT_EQ(Attach(puppet_.pid()), "");
  }
  std::string Run(const std::function<Status(Stopped&)>& work) {
    return WithOneStopped(puppet_.pid(), work);
  }

  Puppet puppet_;
};

TEST_F(SharedMappingTest, BothSeeOneMemoryAndNothingIsLeft) {
  size_t files = OpenFiles(puppet_.pid());
  EXPECT_EQ(Run([&](Stopped& stopped) -> Status {
              PROBED_TRY(SharedMapping mapping, Make(stopped, Access::kTargetWrites));
              EXPECT_NE(sys::ReadMaps(puppet_.pid())->find("/memfd:probed-test"),
                        std::string::npos);
              std::strcpy(reinterpret_cast<char*>(mapping.bytes().data()), "from here");
              EXPECT_EQ(ReadText(stopped, mapping.remote()), "from here");
              PROBED_RETURN_IF_ERROR(
                  stopped.WriteMemory(mapping.remote(), std::as_bytes(std::span("from there"))));
              EXPECT_STREQ(reinterpret_cast<char*>(mapping.bytes().data()), "from there");
              return mapping.Unmap(stopped);
            }),
            "");
  EXPECT_EQ(sys::ReadMaps(puppet_.pid())->find("/memfd:"), std::string::npos);
  EXPECT_EQ(OpenFiles(puppet_.pid()), files);
  puppet_.Send();
  EXPECT_EQ(puppet_.ReadNumber("calls"), 10u);
}

TEST_F(SharedMappingTest, WhatTheTargetMayReadItCannotMakeWritable) {
  EXPECT_EQ(Run([&](Stopped& stopped) -> Status {
              PROBED_TRY(SharedMapping mapping, Make(stopped, Access::kTargetReads));
              auto made_writable =
                  RemoteSyscall(stopped, SYS_mprotect,
                                {mapping.remote().value, kSize, PROT_READ | PROT_WRITE, 0, 0, 0});
              EXPECT_FALSE(made_writable.ok());
              mapping.bytes()[0] = std::byte{'y'};
              EXPECT_EQ(ReadText(stopped, mapping.remote()), "y");
              return mapping.Unmap(stopped);
            }),
            "");
}

// Another thread of a hostile target may have mapped the file before it is sealed.
TEST_F(SharedMappingTest, AFileThatTheTargetHasMappedIsRefused) {
  for (uint64_t protection : {PROT_READ, PROT_READ | PROT_WRITE}) {
    EXPECT_EQ(
        Run([&](Stopped& stopped) -> Status {
          RemoteAddr name{stopped.regs().rsp};  // any: not shown
          PROBED_TRY(uint64_t file, RemoteSyscall(stopped, SYS_memfd_create,
                                                  {name.value, MFD_ALLOW_SEALING, 0, 0, 0, 0}));
          PROBED_TRY(uint64_t mapped,
                     RemoteSyscall(stopped, SYS_mmap, {0, kSize, protection, MAP_SHARED, file, 0}));
          auto adopted = SharedMapping::Adopt(
              stopped, static_cast<int>(file),
              {.name = "", .size = kSize, .access = Access::kTargetReads, .at = {}});
          for (auto [call, argument] : {std::pair{SYS_close, file}, {SYS_munmap, mapped}})
            EXPECT_TRUE(RemoteSyscall(stopped, call, {argument, kSize, 0, 0, 0, 0}).ok());
          return adopted.ok() ? Status() : Status(adopted.error());
        }),
        "SHARED_MEMORY_REFUSED");
  }
}

TEST_F(SharedMappingTest, AFixedPlaceIsReplaced) {
  EXPECT_EQ(Run([&](Stopped& stopped) -> Status {
              PROBED_TRY(SharedMapping first, Make(stopped, Access::kTargetWrites));
              first.bytes()[0] = std::byte{'1'};
              PROBED_TRY(SharedMapping second,
                         Make(stopped, Access::kTargetWrites, first.remote()));
              EXPECT_EQ(second.remote(), first.remote());
              second.bytes()[0] = std::byte{'2'};
              EXPECT_EQ(ReadText(stopped, first.remote()), "2");
              EXPECT_EQ(first.bytes()[0], std::byte{'1'});
              return second.Unmap(stopped);
            }),
            "");
}

TEST_F(SharedMappingTest, ALimitOfTheTargetIsNamed) {
  for (auto resource : {RLIMIT_AS, RLIMIT_NOFILE}) {
    rlimit before{};
    ASSERT_EQ(::prlimit(puppet_.pid(), resource, nullptr, &before), 0);
    rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
    ASSERT_EQ(::prlimit(puppet_.pid(), resource, &none, nullptr), 0);
    EXPECT_EQ(Run(Try), "SHARED_MEMORY_REFUSED");
    ASSERT_EQ(::prlimit(puppet_.pid(), resource, &before, nullptr), 0);
  }
  puppet_.Send();
  EXPECT_EQ(puppet_.ReadNumber("calls"), 10u);
}

TEST_F(TracerTest, NoMemoryIsSharedWithAProcessUnderSeccomp) {
  Puppet puppet("seccomp");
  puppet.ReadLine();
  ASSERT_EQ(Attach(puppet.pid()), "");
  EXPECT_EQ(WithOneStopped(puppet.pid(), Try), "SECCOMP_ACTIVE");
}

}  // namespace
}  // namespace probed::tracee
