#pragma once
// A hit in this very process: its memory is read as another process would.

#include <sys/uio.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "engine/lang/fetch_context.h"

namespace probed::lang::testing {

class SelfContext : public FetchContext {
 public:
  RegisterFile regs;
  std::string task_comm;
  uint64_t base = 0;

  const RegisterFile& registers() const override { return regs; }
  size_t ReadMemory(uint64_t address, std::span<std::byte> out) override {
    const iovec local{out.data(), out.size()};
    const iovec remote{reinterpret_cast<void*>(address), out.size()};
    const ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    return got < 0 ? 0 : static_cast<size_t>(got);
  }
  bool ReadVector(int, VectorRegister&) override { return false; }
  std::string_view comm() override { return task_comm; }
  uint64_t file_base() const override { return base; }
  std::span<const uint64_t> entry_arguments() const override { return {}; }
};

}  // namespace probed::lang::testing
