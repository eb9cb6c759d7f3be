#pragma once
// What a fetch program may look at. The trap path implements it over a stopped thread, tests over
// plain memory. Not thread-safe; lives for one hit.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/lang/registers.h"

namespace probed::lang {

class FetchContext {
 public:
  virtual ~FetchContext() = default;

  virtual const RegisterFile& registers() const = 0;
  // Reads up to out.size() bytes and returns how many came before the first unreadable one.
  virtual size_t ReadMemory(uint64_t address, std::span<std::byte> out) = 0;
  // %xmmN, 0 <= number < 16; false when the vector state cannot be read.
  virtual bool ReadVector(int number, VectorRegister& out) = 0;
  virtual std::string_view comm() = 0;
  // Hit address minus the probe's file offset: the base of `@+N`.
  virtual uint64_t file_base() const = 0;
  // $argN values captured at entry, [0] = $arg1, for return probes; empty on entry probes, whose
  // $argN are read live.
  virtual std::span<const uint64_t> entry_arguments() const = 0;
};

}  // namespace probed::lang
