#include "engine/lang/place.h"

#include <algorithm>
#include <cerrno>
#include <limits>

#include <fmt/format.h>

#include "base/result.h"
#include "engine/lang/ctype.h"
#include "engine/lang/number.h"
#include "engine/lang/path_escape.h"

namespace probed::lang {
namespace {

constexpr size_t kMaxNameLength = 63;
// With five levels of page tables (Documentation/arch/x86/x86_64/5level-paging.rst).
constexpr uint64_t kUserEnd = uint64_t{1} << 56;

Refusal Refuse(RefusalCode code, size_t column, int error_number = EINVAL) {
  return {code, error_number, 1, static_cast<int>(column), {}, {}, {}};
}

Judged<size_t> FindSeparator(std::string_view token, Dialect dialect) {
  if (dialect == Dialect::kKernel && token.find('/') == std::string_view::npos) {
    return Refuse(RefusalCode::kPlaceWithoutPath, 0);
  }
  const size_t colon = PathEnd(token, dialect);
  if (colon == std::string_view::npos || colon + 1 == token.size()) {
    return Refuse(RefusalCode::kPlaceWithoutOffset, 0);
  }
  if (dialect == Dialect::kKernel && !IsDigit(token[colon + 1])) {
    return Refuse(RefusalCode::kPlaceWithoutOffset, 0);
  }
  return colon;
}

Judged<void> FindFile(Place& place, FileNamespace& files) {
  // The kernel takes an empty path for the working directory.
  const FileLookup found = files.Lookup(place.path.empty() ? "." : place.path);
  if (found.error_number != 0) {
    Refusal refusal = Refuse(RefusalCode::kFileNotFound, 0, found.error_number);
    refusal.hint = found.hint;
    return refusal;
  }
  if (!found.regular) return Refuse(RefusalCode::kNoRegularFile, 0);
  place.device = found.device;
  place.inode = found.inode;
  return {};
}

// Only in the extended dialect.
bool IsSymbol(std::string_view rest) {
  return !rest.empty() && !IsDigit(rest[0]);
}

// A symbol's own brackets, as in main.(*T).Inc or f(int), hold no number.
size_t RefCtrStart(std::string_view rest) {
  if (!IsSymbol(rest)) return rest.find('(');
  const size_t open = rest.rfind('(');
  if (open == std::string_view::npos || open + 1 == rest.size()) return std::string_view::npos;
  return IsDigit(rest[open + 1]) ? open : std::string_view::npos;
}

// Go writes some bytes of a symbol as %XX: gopkg.in/yaml%2ev3.Marshal.
bool IsEscape(std::string_view text) {
  return text.size() >= 3 && IsHexDigit(text[1]) && IsHexDigit(text[2]);
}

size_t SuffixStart(std::string_view rest) {
  if (!IsSymbol(rest)) return rest.find('%');
  const size_t percent = rest.rfind('%');
  if (percent == std::string_view::npos || IsEscape(rest.substr(percent))) {
    return std::string_view::npos;
  }
  return percent;
}

// Each Take... looks at `rest`, the token from `column` on, and cuts its part off the end.
Judged<void> TakeRefCtr(Place& place, std::string_view& rest, size_t column) {
  const size_t open = RefCtrStart(rest);
  if (open == std::string_view::npos) return {};
  const size_t close = rest.find(')', open);
  if (close == std::string_view::npos) {
    return Refuse(RefusalCode::kRefcntOpenBrace, column + rest.size());
  }
  if (close + 1 != rest.size()) {
    return Refuse(RefusalCode::kBadRefcntSuffix, column + close + 1);
  }
  const auto number = ParseUnsigned(rest.substr(open + 1, close - open - 1));
  if (number.error_number != 0) {
    return Refuse(RefusalCode::kBadRefcnt, column + open + 1, number.error_number);
  }
  place.ref_ctr_offset = number.value;
  rest = rest.substr(0, open);
  return {};
}

Judged<void> TakeSuffix(Place& place, std::string_view& rest, size_t column) {
  const size_t percent = SuffixStart(rest);
  if (percent == std::string_view::npos) return {};
  if (rest.substr(percent) != "%return") {
    return Refuse(RefusalCode::kBadAddrSuffix, column + percent);
  }
  place.is_return = true;
  rest = rest.substr(0, percent);
  return {};
}

Refusal OwnRefusal(const Error& error, size_t column, int not_found = ENOENT) {
  const int error_number = error.code == ErrorCode::kNotFound ? not_found : EINVAL;
  Refusal refusal = Refuse(RefusalCode::kOwnWords, column, error_number);
  refusal.reason = error.reason;
  refusal.message = error.message;
  refusal.hint = error.hint;
  return refusal;
}

Judged<void> ResolveSymbol(Place& place, std::string_view rest, size_t column,
                           FileNamespace& files) {
  const size_t plus = AddendStart(rest);
  uint64_t addend = 0;
  if (plus != std::string_view::npos) {
    const auto number = ParseUnsigned(rest.substr(plus + 1));
    if (number.error_number != 0) {
      return Refuse(RefusalCode::kBadUprobeOffs, column + plus, number.error_number);
    }
    addend = number.value;
  }
  place.symbol = rest;
  const auto offset = files.ResolveSymbol(place.path, std::string(rest.substr(0, plus)), addend);
  if (!offset.ok()) return OwnRefusal(offset.error(), column);
  place.offset = *offset;
  return {};
}

Judged<void> ParseOffset(Place& place, std::string_view rest, size_t column, FileNamespace& files) {
  if (IsSymbol(rest)) return ResolveSymbol(place, rest, column, files);
  const auto number = ParseUnsigned(rest);
  if (number.error_number != 0) {
    return Refuse(RefusalCode::kBadUprobeOffs, column, number.error_number);
  }
  place.offset = number.value;
  return {};
}

// No file is there, so no reference counter either.
Judged<Place> ParseAddress(std::string_view token, FileNamespace& processes) {
  Place place;
  const size_t column = token.find(':') + 1;
  std::string_view rest = token.substr(column);
  place.path = token.substr(0, column - 1);
  place.process = ProcessOf(token);
  const Status found = processes.LookupProcess(place.process);
  if (!found.ok()) return OwnRefusal(found.error(), 0, ESRCH);
  if (const size_t open = rest.find('('); open != std::string_view::npos) {
    Refusal refusal = Refuse(RefusalCode::kBadRefcnt, column + open + 1);
    refusal.hint = "A reference counter is found by its offset in a file, and here is none.";
    return refusal;
  }
  if (auto taken = TakeSuffix(place, rest, column); !taken.ok()) return taken.error();
  const auto number = ParseUnsigned(rest);
  if (number.error_number != 0) {
    return Refuse(RefusalCode::kBadUprobeOffs, column, number.error_number);
  }
  if (number.value >= kUserEnd) {
    Refusal refusal = Refuse(RefusalCode::kBadUprobeOffs, column);
    refusal.hint = "No program has that address. For code of the kernel's: p:... SYMBOL[+OFFSET].";
    return refusal;
  }
  place.offset = number.value;
  return place;
}

Judged<std::string> TakeGroup(std::string_view text, size_t separator, int column) {
  const auto refuse = [&](RefusalCode code) {
    return Refusal{code, EINVAL, 0, column, {}, {}, {}};
  };
  if (separator == 0) return refuse(RefusalCode::kNoGroupName);
  if (separator > kMaxNameLength) return refuse(RefusalCode::kGroupTooLong);
  const std::string_view group = text.substr(0, separator);
  if (!IsGroupName(group)) return refuse(RefusalCode::kBadGroupName);
  return std::string(group);
}

}  // namespace

size_t PathEnd(std::string_view token, Dialect dialect) {
  size_t colon = token.rfind(':');
  if (dialect == Dialect::kKernel) return colon;
  while (colon != std::string_view::npos && colon > 0 && token[colon - 1] == ':') {
    colon = colon < 2 ? std::string_view::npos : token.rfind(':', colon - 2);
  }
  return colon;
}

size_t AddendStart(std::string_view symbol) {
  const size_t plus = symbol.rfind('+');
  if (plus == std::string_view::npos) return plus;
  if (plus + 1 < symbol.size() && IsDigit(symbol[plus + 1])) return plus;
  std::string_view before = symbol.substr(0, plus);
  while (before.ends_with('+'))
    before.remove_suffix(1);
  return before.ends_with("operator") ? std::string_view::npos : plus;
}

Judged<Place> ParsePlace(std::string_view token, Dialect dialect, FileNamespace& files) {
  if (dialect == Dialect::kExtended && ProcessOf(token) != 0) return ParseAddress(token, files);
  Place place;
  PROBED_TRY(const size_t colon, FindSeparator(token, dialect));
  const std::string_view path = token.substr(0, colon);
  place.path = dialect == Dialect::kExtended ? UnescapePath(path) : std::string(path);
  std::string_view rest = token.substr(colon + 1);
  const size_t column = colon + 1;
  if (auto file = FindFile(place, files); !file.ok()) return file.error();
  if (auto taken = TakeRefCtr(place, rest, column); !taken.ok()) return taken.error();
  if (auto taken = TakeSuffix(place, rest, column); !taken.ok()) return taken.error();
  if (auto offset = ParseOffset(place, rest, column, files); !offset.ok()) return offset.error();
  return place;
}

int ProcessOf(std::string_view token) {
  const size_t colon = token.find(':');
  const bool is_alone = colon != std::string_view::npos && token.rfind(':') == colon;
  if (!is_alone || colon + 1 == token.size() || !IsDigit(token[colon + 1])) return 0;
  const std::string_view digits = token.substr(0, colon);
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), IsDigit)) return 0;
  const auto number = ParseUnsigned(digits, 10);
  const bool is_pid = number.error_number == 0 &&
                      number.value <= static_cast<uint64_t>(std::numeric_limits<int>::max());
  return is_pid ? static_cast<int>(number.value) : 0;
}

std::string FormatOffset(uint64_t offset, uint64_t ref_ctr_offset) {
  if (ref_ctr_offset == 0) return fmt::format("0x{:016x}", offset);
  return fmt::format("0x{:016x}(0x{:x})", offset, ref_ctr_offset);
}

Judged<EventName> ParseEventName(std::string_view text, int column) {
  EventName name;
  size_t separator = text.find('/');
  if (separator == std::string_view::npos) separator = text.find('.');
  const bool has_group = separator != std::string_view::npos;
  if (has_group) {
    PROBED_TRY(name.group, TakeGroup(text, separator, column));
    text.remove_prefix(separator + 1);
    column += static_cast<int>(separator) + 1;
  }
  const auto refuse = [&](RefusalCode code) {
    return Refusal{code, EINVAL, 0, column, {}, {}, {}};
  };
  if (text.empty()) {
    if (has_group) return name;
    return refuse(RefusalCode::kNoEventName);
  }
  if (text.size() > kMaxNameLength) return refuse(RefusalCode::kEventTooLong);
  if (!IsIdentifier(text)) return refuse(RefusalCode::kBadEventName);
  name.event = text;
  return name;
}

std::string GenerateEventName(std::string_view path, uint64_t offset) {
  std::string_view base = path.substr(path.rfind('/') + 1);
  base = base.substr(0, base.find_first_of(".-_ \t\n\v\f\r#\240"));
  std::string name = fmt::format("p_{}_0x{:x}", base, offset);
  if (name.size() > kMaxNameLength) name.resize(kMaxNameLength);
  return name;
}

}  // namespace probed::lang
