#pragma once
// Places near code for many things at once. The process runs while they are looked for in memory
// that is mapped; it is stopped only for the mappings that are missing. Tracer thread only.

#include <functional>
#include <optional>
#include <span>

#include "base/result.h"
#include "engine/tracee/code_arena.h"
#include "engine/tracee/stopped.h"

namespace probed::tracee {

struct WantedCode {
  Window window;
  size_t size = 0;
  RemoteAddr place;              // 0: none
  std::optional<Error> refusal;  // why there is none
};

// Does the work in a stop of one thread, in which the arena must still be the same image's.
using InOneStop = std::function<Status(const std::function<void(Stopped&)>&)>;

// An error is that of a stop; the arena may be gone then. Otherwise each has a place or a refusal.
Status ReserveCode(CodeArena& arena, std::span<WantedCode> wanted, const InOneStop& stop);
void FreeCode(CodeArena& arena, std::span<const WantedCode> wanted);

}  // namespace probed::tracee
