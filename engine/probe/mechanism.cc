#include "engine/probe/mechanism.h"

namespace probed::probe {

std::string_view MechanismName(Mechanism mechanism) {
  switch (mechanism) {
    case Mechanism::kNone:
      return "none";
    case Mechanism::kUnoptimized:
      return "unoptimized";
    case Mechanism::kBoosted:
      return "boosted";
    case Mechanism::kOptimized:
      return "optimized";
    case Mechanism::kKernel:
      return "kernel";
  }
  return "none";
}

}  // namespace probed::probe
