#pragma once
// Sites in memory that is no file's (`PID:0xADDRESS`). A program that generates code may write over
// it, unmap it or take its right to execute away, and tells nobody. So what stands there is looked
// at before a hit is believed, whenever mappings are looked at or somebody asks, and before
// anything is written there. Where it is not what it was, the site leaves for good: bytes that are
// not ours stay. Tracer thread only.

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/probe/address_space.h"
#include "engine/probe/process_state.h"

namespace probed::probe {

// Its site stays a breakpoint.
inline constexpr std::string_view kNoJumpInGeneratedCode =
    "code that is in no file may be rewritten under a jump";

// Whether what was `before` is still there but for our breakpoint on its first byte and for
// operands: those (a jump's distance, an address, a constant) are changed in place, and that byte
// is left alone. Whatever else a program writes has a first byte of its own.
bool IsPatchedBehind(std::span<const uint8_t> before, std::span<const uint8_t> present);

// Whether a probe may stand at `address`, in executable memory that this process alone has and that
// no file can be named for. NOT_MAPPED, NOT_EXECUTABLE, MEMORY_SHARED, ADDRESS_IN_FILE, OWN_CODE.
Status JudgeAddress(const ProcessState& state, const AddressSpace& space, RemoteAddr address);

// Those that have something of ours, or will if their probes are enabled.
std::vector<Site*> GeneratedSites(const ProcessState& state);

// False: it has left; sites in files do not. `stopped` is a thread of the process that is; without
// one, a site whose byte cannot be written back stays as it is.
bool StandsStill(ProcessState& state, Site& site, std::optional<pid_t> stopped);
// The same of all of them, and whether their memory is still executable where `space` is given.
void LookAtGeneratedCode(ProcessState& state, std::optional<pid_t> stopped,
                         const AddressSpace* space = nullptr);
// The program has copied or moved code, a breakpoint of ours in it (garbage collectors do), and has
// run into that: the copy has the program's own byte when this says so.
bool MendCopy(const ProcessState& state, RemoteAddr address, pid_t stopped);
// The memory is about to be forgotten.
void LeaveGeneratedCode(ProcessState& state, const std::string& why);

}  // namespace probed::probe
