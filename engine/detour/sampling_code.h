#pragma once
// Machine code of ring::Take.

#include "engine/detour/assembler.h"
#include "engine/detour/hit_place.h"

namespace probed::detour {

// Falls through when the hit is recorded. Temporary registers only.
void EmitSampling(Assembler& assembler, const DetourProbe& probe, const HitPlace& place,
                  Label& left_out);

}  // namespace probed::detour
