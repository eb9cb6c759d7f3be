#include "tests/arch/puppet.h"

#include <elf.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "tests/support/fork.h"

namespace probed::arch {
namespace {

constexpr uint8_t kInt3 = 0xcc;
constexpr size_t kMaxXstate = 16384;

// Pages of the memfd and where the child maps them.
struct Mapping {
  uint64_t child_offset;
  uint64_t file_offset;
  uint64_t size;
  int protection;
};

constexpr uint64_t kPage = layout::kPage;
constexpr uint64_t kImageAt = 5 * kPage;  // behind code and arenas
constexpr int kReadWrite = PROT_READ | PROT_WRITE;
constexpr Mapping kMappings[] = {
    {layout::kCode, 0, 2 * kPage, PROT_READ | PROT_EXEC},
    {layout::kNearArena, 2 * kPage, kPage, PROT_READ | PROT_EXEC},
    {layout::kFarArena, 3 * kPage, kPage, PROT_READ | PROT_EXEC},
    {layout::kRemoteArena, 4 * kPage, kPage, PROT_READ | PROT_EXEC},
    {layout::kData, kImageAt, 2 * kPage, kReadWrite},
    {layout::kDataSecond, kImageAt + 2 * kPage, kPage, kReadWrite},
    {layout::kDataReadOnly, kImageAt + 3 * kPage, kPage, PROT_READ},
    {layout::kStack, kImageAt + 4 * kPage, layout::kStackSize, kReadWrite},
};
constexpr uint64_t kFileSize = kImageAt + layout::kImageSize;

uint64_t FileOffsetOf(uint64_t child_offset) {
  for (const Mapping& mapping : kMappings) {
    if (mapping.child_offset == child_offset) return mapping.file_offset;
  }
  return 0;
}

bool MapAll(uint64_t base, int fd) {
  for (const Mapping& mapping : kMappings) {
    void* where = reinterpret_cast<void*>(base + mapping.child_offset);
    void* got = mmap(where, mapping.size, mapping.protection, MAP_SHARED | MAP_FIXED_NOREPLACE, fd,
                     static_cast<off_t>(mapping.file_offset));
    if (got != where) return false;
  }
  return true;
}

// rdpid and rseq stay constant, and the switch between tracer and child is cheap, on one processor.
void PinToThisProcessor() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &set);
  sched_setaffinity(0, sizeof set, &set);
}

[[noreturn]] void RunChild(uint64_t base, int fd) {
  if (!MapAll(base, fd) || ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(1);
  raise(SIGSTOP);
  _exit(1);
}

}  // namespace

Puppet::Puppet(uint64_t base, UniqueFd memory) : base_(base), memory_(std::move(memory)) {}

std::unique_ptr<Puppet> Puppet::Create(uint64_t base) {
  UniqueFd memory(memfd_create("puppet", MFD_CLOEXEC));
  if (ftruncate(memory.get(), static_cast<off_t>(kFileSize)) != 0) return nullptr;
  std::unique_ptr<Puppet> puppet(new Puppet(base, std::move(memory)));
  return puppet->Start() ? std::move(puppet) : nullptr;
}

bool Puppet::Start() {
  void* view = mmap(nullptr, kFileSize, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
  if (view == MAP_FAILED) return false;
  view_ = static_cast<uint8_t*>(view);
  PinToThisProcessor();
  pid_ = ForkOrDie();
  if (pid_ == 0) RunChild(base_, memory_.get());
  int status = 0;
  if (waitpid(pid_, &status, 0) != pid_ || !WIFSTOPPED(status)) return false;
  ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_EXITKILL);
  initial_ = GetState();
  initial_.regs.orig_rax = ~0ULL;  // no system call to restart
  watchdog_ = std::jthread([this](const std::stop_token& token) { Watch(token); });
  return true;
}

Puppet::~Puppet() {
  watchdog_ = {};
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (view_ != nullptr) munmap(view_, kFileSize);
}

// Kills the child when one resume lasts for seconds, so that an endless loop fails the test.
void Puppet::Watch(const std::stop_token& token) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  uint64_t seen = 0;
  while (!wake.wait_for(lock, token, std::chrono::seconds(10), [] { return false; })) {
    if (token.stop_requested()) return;
    uint64_t now = resumes_.load();
    if (now % 2 == 1 && now == seen) kill(pid_, SIGKILL);
    seen = now;
  }
}

void Puppet::FillCode(std::span<const uint8_t> instruction) {
  uint8_t* code = view_ + FileOffsetOf(layout::kCode);
  std::memset(code, kInt3, 2 * kPage);
  std::memcpy(code + layout::kInstruction, instruction.data(), instruction.size());
}

void Puppet::FillArena(uint64_t arena, std::span<const uint8_t> copy) {
  uint8_t* page = view_ + FileOffsetOf(arena);
  std::memset(page, kInt3, kPage);
  std::memcpy(page + layout::kCopyInArena, copy.data(), copy.size());
}

void Puppet::SetState(const MachineState& state) {
  std::memcpy(view_ + kImageAt, state.memory.data(), state.memory.size());
  iovec vector{const_cast<uint8_t*>(state.xstate.data()), state.xstate.size()};
  if (ptrace(PTRACE_SETREGS, pid_, nullptr, &state.regs) != 0 ||
      ptrace(PTRACE_SETREGSET, pid_, NT_X86_XSTATE, &vector) != 0) {
    std::perror("registers of the puppet");
    std::abort();  // nothing that follows would be true
  }
}

MachineState Puppet::GetState() {
  MachineState state;
  ptrace(PTRACE_GETREGS, pid_, nullptr, &state.regs);
  state.xstate.resize(kMaxXstate);
  iovec vector{state.xstate.data(), state.xstate.size()};
  ptrace(PTRACE_GETREGSET, pid_, NT_X86_XSTATE, &vector);
  state.xstate.resize(vector.iov_len);
  state.memory.assign(view_ + kImageAt, view_ + kImageAt + layout::kImageSize);
  return state;
}

bool Puppet::Continue(Stop& stop) {
  return Resume(PTRACE_CONT, stop);
}
bool Puppet::Step(Stop& stop) {
  return Resume(PTRACE_SINGLESTEP, stop);
}

bool Puppet::Resume(int request, Stop& stop) {
  int status = 0;
  ++resumes_;
  ptrace(static_cast<__ptrace_request>(request), pid_, nullptr, nullptr);
  bool stopped = waitpid(pid_, &status, 0) == pid_ && WIFSTOPPED(status);
  ++resumes_;
  if (!stopped) {
    pid_ = -1;
    return false;
  }
  siginfo_t info{};
  ptrace(PTRACE_GETSIGINFO, pid_, nullptr, &info);
  stop = {WSTOPSIG(status), info.si_code, reinterpret_cast<uint64_t>(info.si_addr)};
  return true;
}

bool PuppetMemory::Load(uint64_t address, std::span<std::byte> out) {
  iovec local{out.data(), out.size()};
  iovec remote{reinterpret_cast<void*>(address), out.size()};
  return process_vm_readv(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(out.size());
}

// All or nothing: a store that reaches into a hole must not leave its first half behind.
bool PuppetMemory::Store(uint64_t address, std::span<const std::byte> bytes) {
  std::vector<std::byte> old(bytes.size());
  if (!Load(address, old)) return false;
  iovec local{const_cast<std::byte*>(bytes.data()), bytes.size()};
  iovec remote{reinterpret_cast<void*>(address), bytes.size()};
  ssize_t stored = process_vm_writev(pid_, &local, 1, &remote, 1, 0);
  if (stored == static_cast<ssize_t>(bytes.size())) return true;
  if (stored > 0) {
    local = {old.data(), static_cast<size_t>(stored)};
    process_vm_writev(pid_, &local, 1, &remote, 1, 0);
  }
  return false;
}

}  // namespace probed::arch
