#include "engine/lang/type.h"

namespace probed::lang {

bool IsStringLike(BaseType base) {
  return base == BaseType::kString || base == BaseType::kUstring || base == BaseType::kBytes;
}

bool IsSigned(BaseType base) {
  return base == BaseType::kS8 || base == BaseType::kS16 || base == BaseType::kS32 ||
         base == BaseType::kS64;
}

uint32_t ElementSize(BaseType base) {
  switch (base) {
    case BaseType::kU8:
    case BaseType::kS8:
    case BaseType::kX8:
    case BaseType::kChar:
      return 1;
    case BaseType::kU16:
    case BaseType::kS16:
    case BaseType::kX16:
      return 2;
    case BaseType::kU32:
    case BaseType::kS32:
    case BaseType::kX32:
    case BaseType::kF32:
      return 4;
    case BaseType::kU64:
    case BaseType::kS64:
    case BaseType::kX64:
    case BaseType::kF64:
    case BaseType::kString:
    case BaseType::kUstring:
    case BaseType::kBytes:
      return 8;
  }
  return 8;
}

uint32_t KernelElementSize(BaseType base) {
  return IsStringLike(base) ? 4 : ElementSize(base);
}

}  // namespace probed::lang
