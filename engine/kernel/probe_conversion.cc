#include "engine/kernel/probe_conversion.h"

#include "engine/lang/type.h"

namespace probed::kernel {

using lang::BaseType;

Conversion ProbeConversions::Of(std::string_view argument) const {
  const std::string key = " " + std::string(argument) + "=";
  const size_t at = text_.find(key);
  if (at == text_.npos) return Conversion::kDecimal;
  std::string_view conversion = std::string_view(text_).substr(at + key.size());
  if (conversion.starts_with('{')) conversion.remove_prefix(1);
  if (conversion.starts_with("0x")) return Conversion::kHex;
  if (conversion.starts_with("'%c'")) return Conversion::kChar;
  if (conversion.starts_with("%pS")) return Conversion::kSymbol;
  return Conversion::kDecimal;
}

lang::BaseType ToBase(Conversion conversion, lang::BaseType number) {
  if (conversion == Conversion::kChar) return BaseType::kChar;
  if (conversion == Conversion::kDecimal) return number;
  switch (lang::ElementSize(number)) {
    case 1:
      return BaseType::kX8;
    case 2:
      return BaseType::kX16;
    case 4:
      return BaseType::kX32;
    default:
      return BaseType::kX64;
  }
}

}  // namespace probed::kernel
