#pragma once
// A small function in this process with a detour on its first instructions, the shared memory that
// it records to, and the part of the daemon that a faulting load needs.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/detour/detour.h"
#include "engine/ring/layout.h"
#include "tests/detour/machine.h"

namespace probed::detour::testing {

// Zeroed memory of this process, unmapped at the end.
class Mapping {
 public:
  explicit Mapping(size_t bytes, int extra_protection = 0);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  uint64_t address() const { return reinterpret_cast<uint64_t>(data_); }
  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }

 private:
  std::byte* data_;
  size_t bytes_;
};

struct Record {
  uint64_t position = 0;
  uint64_t length = 0;  // what it takes in the ring
  ring::RecordHeader header;
  std::vector<std::byte> payload;
};

// Both memfds of layout.h, with one ring so that it does not matter on which CPU a test runs.
class Memory {
 public:
  explicit Memory(uint64_t ring_bytes = 1 << 20);

  SharedMemory shared() const;
  void SetArmed(uint32_t word);
  void SetMode(uint32_t probe, ring::ProbeMode mode);
  void SetTail(uint64_t tail);
  void SetHead(uint64_t head);
  uint64_t head() const;
  // The calling thread's shadow stack; and whether it can be found.
  ring::ShadowStack& shadow_stack();
  void SetThreadKnown(bool known);
  const ring::ProbeCounters& counters(uint32_t probe) const;
  // As if it had been sampled in that second.
  void StartSampling(uint32_t probe, uint32_t second);
  uint64_t tail() const;
  // All records that are committed behind the tail, read as layout.h says.
  std::vector<Record> Records() const;
  // The same, and gives their room back.
  std::vector<Record> TakeRecords();

 private:
  template <class T>
  T& At(const Mapping& mapping, uint64_t offset) const {
    return *reinterpret_cast<T*>(mapping.data() + offset);
  }

  ring::Geometry geometry_;
  Mapping control_;
  Mapping ring_;
  Mapping routines_;
};

// While it lives, loads of `detour`, whose code is at `address`, may fault.
class FaultScope {
 public:
  FaultScope(const Detour& detour, uint64_t address);
  ~FaultScope();
  FaultScope(const FaultScope&) = delete;
  FaultScope& operator=(const FaultScope&) = delete;
};

class InstalledDetour {
 public:
  // Every program gets the index of its place in `probes`, and is set to record.
  InstalledDetour(Memory& memory, std::span<const DetourProbe> probes,
                  std::span<const uint8_t> function, bool has_rdpid = HasRdpid(),
                  const Hijack& hijack = {});
  InstalledDetour(const InstalledDetour&) = delete;
  InstalledDetour& operator=(const InstalledDetour&) = delete;

  // Why it could not be assembled; empty if it was.
  const std::string& refusal() const { return refusal_; }
  const Detour& detour() const { return detour_; }
  uint64_t site() const { return code_.address(); }
  uint64_t buffer() const;
  std::span<const arch::Instruction> region() const { return region_; }
  // The same function without the detour.
  uint64_t original() const;

  void Run(Registers& registers) const { RunAt(registers, site()); }
  // Loads that faulted and were fixed up, over all detours so far.
  static uint64_t fix_ups();

 private:
  Mapping code_;
  std::vector<arch::Instruction> region_;
  Detour detour_;
  std::string refusal_;
  std::optional<FaultScope> faults_;
};

}  // namespace probed::detour::testing
