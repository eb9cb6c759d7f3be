#include "engine/kernel/owner.h"

#include <charconv>

#include <fmt/format.h>

namespace probed::kernel {
namespace {

constexpr std::string_view kWord = "probed";

// Takes "SEPARATOR NUMBER" off `text`.
template <class Number>
bool TakeNumber(std::string_view& text, char separator, Number& number) {
  if (text.size() < 2 || text[0] != separator || text[1] == '-') return false;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

// Leaves in `text` what follows.
std::optional<Owner> TakeOwner(std::string_view& text, char separator) {
  Owner owner;
  if (!text.starts_with(kWord)) return std::nullopt;
  text.remove_prefix(kWord.size());
  if (!TakeNumber(text, separator, owner.pid) || !TakeNumber(text, separator, owner.start_ticks))
    return std::nullopt;
  TakeNumber(text, separator, owner.serial);
  return owner;
}

std::string Name(const Owner& owner, char separator) {
  std::string name =
      fmt::format("{}{}{}{}{}", kWord, separator, owner.pid, separator, owner.start_ticks);
  if (owner.serial != 0) name += fmt::format("{}{}", separator, owner.serial);
  return name;
}

}  // namespace

std::string InstanceName(const Owner& owner) {
  return Name(owner, '-');
}

std::string GroupPrefix(const Owner& owner) {
  return Name(owner, '_') + "_";
}

std::optional<Owner> ParseInstanceName(std::string_view name) {
  std::string_view rest = name;
  const auto owner = TakeOwner(rest, '-');
  if (!owner || InstanceName(*owner) != name) return std::nullopt;
  return owner;
}

std::optional<Owner> OwnerOf(std::string_view name) {
  std::string_view rest = name;
  const auto owner = TakeOwner(rest, '_');
  if (!owner || rest.size() < 2 || rest[0] != '_') return std::nullopt;
  if (!name.starts_with(GroupPrefix(*owner))) return std::nullopt;
  return owner;
}

std::string_view WithoutPrefix(std::string_view name) {
  const auto owner = OwnerOf(name);
  return owner ? name.substr(GroupPrefix(*owner).size()) : name;
}

}  // namespace probed::kernel
