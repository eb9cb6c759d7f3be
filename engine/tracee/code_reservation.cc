#include "engine/tracee/code_reservation.h"

#include <algorithm>

namespace probed::tracee {
namespace {

// Code that is further apart than a jump reaches has memory of its own each.
constexpr int kMostNeighbourhoods = 4;

bool IsMissing(const WantedCode& wanted) {
  return wanted.place.value == 0 && !wanted.refusal;
}

void TakeMapped(CodeArena& arena, std::span<WantedCode> wanted) {
  for (WantedCode& one : wanted) {
    if (IsMissing(one)) one.place = arena.Take(one.window, one.size).value_or(RemoteAddr{});
  }
}

void Allocate(CodeArena::Growth& growth, WantedCode& one) {
  auto place = growth.Allocate(one.window, one.size);
  if (place.ok()) {
    one.place = *place;
  } else {
    one.refusal = std::move(place).error();
  }
}

// What can be anywhere near gets one block, in which it is placed while the process runs; what must
// be at one place gets memory there.
void MapMissing(Stopped& stopped, CodeArena& arena, std::span<WantedCode> wanted) {
  CodeArena::Growth growth(arena, stopped);
  WantedCode* anywhere = nullptr;
  size_t bytes = 0;
  for (WantedCode& one : wanted) {
    if (!IsMissing(one)) continue;
    if (!one.window.IsWide()) {
      Allocate(growth, one);
    } else {
      anywhere = anywhere != nullptr ? anywhere : &one;
      bytes += CodeArena::Rounded(one.size);
    }
  }
  if (anywhere == nullptr) return;
  growth.ExpectWide(bytes);
  Allocate(growth, *anywhere);
}

void AllocateMissing(Stopped& stopped, CodeArena& arena, std::span<WantedCode> wanted) {
  CodeArena::Growth growth(arena, stopped);
  for (WantedCode& one : wanted) {
    if (IsMissing(one)) Allocate(growth, one);
  }
}

}  // namespace

Status ReserveCode(CodeArena& arena, std::span<WantedCode> wanted, const InOneStop& stop) {
  for (int i = 0;; ++i) {
    TakeMapped(arena, wanted);
    if (std::none_of(wanted.begin(), wanted.end(), IsMissing)) return {};
    PROBED_RETURN_IF_ERROR(stop([&](Stopped& stopped) {
      if (i < kMostNeighbourhoods) return MapMissing(stopped, arena, wanted);
      AllocateMissing(stopped, arena, wanted);
    }));
  }
}

void FreeCode(CodeArena& arena, std::span<const WantedCode> wanted) {
  for (const WantedCode& one : wanted)
    if (one.place.value != 0) arena.Free(one.place, one.size);
}

}  // namespace probed::tracee
