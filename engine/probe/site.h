#pragma once
// One address in one process with a breakpoint or a jump of ours: what stood there, how it is
// executed out of line, and who wants to know. Tracer thread only.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "base/result.h"
#include "engine/arch/x86_64/instruction.h"
#include "engine/arch/x86_64/relocate.h"
#include "engine/probe/optimization.h"
#include "engine/probe/probe.h"
#include "engine/tracee/code_memory.h"
#include "engine/tracee/stopped.h"

namespace probed::probe {

inline constexpr uint8_t kBreakpointByte = 0xcc;

// Breakpoints that the engine needs for itself.
enum class Hook : uint8_t {
  kProgramEntry = 1,   // the program's first own instruction after an exec
  kModuleList = 2,     // the dynamic linker has changed its list of modules
  kUnwind = 4,         // something is about to walk the stack
  kCatch = 8,          // an exception has reached its handler
  kMapped = 16,        // the program has mapped something
  kProtected = 32,     // it has changed what may be done with memory
  kUnmapped = 64,      // it has given memory back, or moved it
  kKeepsReturn = 128,  // the return address on top of the stack is about to be saved elsewhere
};

// Of a breakpoint about which the optimizer has not said a word yet.
inline constexpr std::string_view kUndecided = "it becomes a jump if its code allows that";

// Where a site is, in the words of its file.
struct SitePlace {
  std::string module;
  uint64_t device = 0, inode = 0;
  FileOffset offset;
  std::string symbol;  // symbol+0xoff, may be empty
  // Of code that is in no file (generated_code.h): what stood there, from the address on.
  std::vector<uint8_t> generated{};
};

// The program's own bytes from a site on: by them its code is known where it was copied to other
// memory (unmapped.h). May be shorter at the end of a mapping.
using OwnCode = std::vector<uint8_t>;

class Site {
 public:
  // Of a copy in its slot, before which stands its mark; keeps the alignment.
  static constexpr size_t kCopyPlace = 16;
  static constexpr size_t kSlotSize = kCopyPlace + arch::kMaxCopySize;

  Site(RemoteAddr address, SitePlace place, arch::Instruction instruction, OwnCode code = {})
      : address_(address),
        place_(std::move(place)),
        instruction_(std::move(instruction)),
        code_(std::move(code)) {}

  RemoteAddr address() const { return address_; }
  const SitePlace& place() const { return place_; }
  const arch::Instruction& instruction() const { return instruction_; }
  const OwnCode& code() const { return code_; }
  Mechanism mechanism() const;
  std::string reason() const;
  // The optimizer has not told yet whether a jump takes the breakpoint's place.
  bool undecided() const {
    return armed_ && copy_.boosted && optimization_ == nullptr && obstacle_.empty();
  }

  // The out-of-line copy; only what can be emulated may do without.
  void set_copy(RemoteAddr address, arch::OutOfLineCopy copy);
  bool has_copy() const { return copy_address_.value != 0; }
  RemoteAddr copy_address() const { return copy_address_; }
  RemoteAddr slot() const { return RemoteAddr{copy_address_.value - kCopyPlace}; }
  const arch::OutOfLineCopy& copy() const { return copy_; }
  // Where the copied instruction ends: a jump back (boosted) or a breakpoint of ours.
  RemoteAddr copy_end() const { return copy_address_ + copy_.instruction_length; }
  // Where the program believes to be when its ip is in the copy.
  std::optional<uint64_t> ShownAddress(RemoteAddr ip) const {
    return arch::OriginalIp(copy_, copy_address_.value, ip.value);
  }
  bool NotExecuted(RemoteAddr ip) const { return ShownAddress(ip) == address_.value; }
  bool is_emulated() const { return !copy_.boosted && CanBeEmulated(); }
  RemoteAddr next() const { return address_ + instruction_.length; }

  // Newest first, the order in which they run.
  const std::vector<std::shared_ptr<Probe>>& probes() const { return probes_; }
  bool Carries(const Probe& probe) const;
  void AddProbe(std::shared_ptr<Probe> probe);
  void RemoveProbe(const Probe& probe);
  void AddHook(Hook hook) { hooks_ |= static_cast<uint8_t>(hook); }
  void RemoveHook(Hook hook) { hooks_ &= static_cast<uint8_t>(~static_cast<uint8_t>(hook)); }
  bool HasHook(Hook hook) const { return (hooks_ & static_cast<uint8_t>(hook)) != 0; }
  bool has_hooks() const { return hooks_ != 0; }
  bool wanted() const;  // by an enabled probe or a hook, and not gone
  // What was to be recorded for that probe is to be given up.
  bool HasDisabledReturn() const;

  // The breakpoint. Writing one byte is atomic for the program's other threads (Intel SDM vol. 3,
  // 9.1.3 asks for synchronisation only where longer runs of bytes change).
  bool armed() const { return armed_; }
  // Whether a thread may stand one byte behind the breakpoint without having run into it: when a
  // whole instruction has that byte, when a jump skips a lock prefix (as C libraries do), or when
  // the site itself may be inside an instruction, or other code be there meanwhile.
  bool is_ambiguous() const;
  Status Arm(tracee::CodeMemory& code);
  // SITE_OVERWRITTEN when the byte is not ours any more; it is left alone then. Stays armed when
  // the byte cannot be written. SITE_OPTIMIZED: Unoptimize() it first.
  Status Disarm(tracee::CodeMemory& code);

  // The jump in the place of the breakpoint of an armed site, and back. Every thread is stopped,
  // and none is on the bytes that change, nor in the copy (Optimize) or the detour (Unoptimize). On
  // error the breakpoint is as it was; SITE_OVERWRITTEN: the program has changed bytes of the jump,
  // which are left to it.
  Status Optimize(tracee::CodeMemory& code, std::shared_ptr<const Optimization> optimization);
  Status Unoptimize(tracee::CodeMemory& code);
  // Null: it is a breakpoint.
  const std::shared_ptr<const Optimization>& optimization() const { return optimization_; }
  // Why it is none of those, in words for the user.
  void set_obstacle(std::string why) { obstacle_ = std::move(why); }
  // It will be none for as long as the image lives.
  void Bar(std::string why) {
    barred_ = true;
    obstacle_ = std::move(why);
  }
  bool barred() const { return barred_; }
  // Reads the original byte back. SITE_NOT_RESTORED.
  Status Verify(tracee::CodeMemory& code) const;
  // For a copy of the process's memory (fork), breakpoints included.
  void InheritPatch() { CountArmed(+1); }
  // The memory is gone (exec, munmap), and the breakpoint with it.
  void ForgetPatch() {
    if (armed_) CountArmed(-1);
  }
  void ForgetOptimization() { optimization_ = nullptr; }

  bool is_generated() const { return !place_.generated.empty(); }
  // The code is not what it was: nothing is written here any more. The site is still known, as
  // threads may be in its copy.
  void Leave(std::string why);
  bool gone() const { return gone_; }

  // A USDT semaphore: 16 bits in the program's data, raised while the site is armed.
  void SetReferenceCounter(tracee::Stopped& stopped, RemoteAddr counter);
  RemoteAddr reference_counter() const { return reference_counter_; }
  // Of a site that was armed before we knew it.
  void AdoptReferenceCounter(RemoteAddr counter) { reference_counter_ = counter; }
  // Where the file has it, if a probe names one whose data is not mapped yet.
  const lang::Definition* MissingReferenceCounter() const;

  void CountHits(uint64_t hits) { hits_ += hits; }
  uint64_t hits() const { return hits_; }

 private:
  bool CanBeEmulated() const { return instruction_.execution == arch::Execution::kEmulate; }
  void CountArmed(int change);
  void Reconsider();
  void ChangeReferenceCounter(tracee::Stopped& stopped, int change) const;

  RemoteAddr address_;
  SitePlace place_;
  arch::Instruction instruction_;
  OwnCode code_;
  RemoteAddr copy_address_;
  RemoteAddr reference_counter_;
  arch::OutOfLineCopy copy_;
  std::vector<std::shared_ptr<Probe>> probes_;
  uint8_t hooks_ = 0;
  bool armed_ = false;
  std::shared_ptr<const Optimization> optimization_;
  std::string obstacle_;
  bool barred_ = false;
  bool gone_ = false;
  uint64_t hits_ = 0;
};

}  // namespace probed::probe
