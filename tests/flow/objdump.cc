#include "tests/flow/objdump.h"

#include <charconv>
#include <cstdio>
#include <memory>

namespace probed::probe {
namespace {

std::string_view TakeWord(std::string_view& text) {
  size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return text = {}, text;
  text.remove_prefix(begin);
  size_t end = std::min(text.find_first_of(" \t\n"), text.size());
  std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

// All of `word` as a hexadecimal number.
bool ParseHex(std::string_view word, uint64_t& value) {
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, 16);
  return error == std::errc() && end == word.data() + word.size();
}

bool IsPrefix(std::string_view word) {
  return word == "bnd" || word == "notrack" || word == "data16" || word == "cs" || word == "ds" ||
         word == "rex.W" || word == "addr32" || word == "lock";
}

bool Branches(std::string_view mnemonic) {
  return mnemonic.starts_with('j') || mnemonic.starts_with("call") ||
         mnemonic.starts_with("loop") || mnemonic == "xbegin";
}

// "  401000:\tje     401020 <main+0x20>"
bool Parse(std::string_view text, ObjdumpLine& line) {
  std::string_view address = TakeWord(text);
  if (!address.ends_with(':')) return false;
  if (!ParseHex(address.substr(0, address.size() - 1), line.address)) return false;
  line.mnemonic = TakeWord(text);
  while (IsPrefix(line.mnemonic))
    line.mnemonic = TakeWord(text);
  if (line.mnemonic.empty() || line.mnemonic == "(bad)") return false;
  // jrcxz,pt and the like
  std::string_view operand = TakeWord(text);
  if (!Branches(line.mnemonic) || !ParseHex(operand, line.target)) line.target = 0;
  return true;
}

}  // namespace

bool Objdump(const std::string& path, const std::function<void(const ObjdumpLine&)>& sink) {
  std::string command = "objdump -d --no-show-raw-insn " + path + " 2>/dev/null";
  std::unique_ptr<FILE, int (*)(FILE*)> output(::popen(command.c_str(), "r"), ::pclose);
  if (output == nullptr) return false;
  char* text = nullptr;
  size_t capacity = 0;
  ssize_t size;
  while ((size = ::getline(&text, &capacity, output.get())) > 0) {
    ObjdumpLine line;
    if (Parse({text, static_cast<size_t>(size)}, line)) sink(line);
  }
  ::free(text);
  return ::pclose(output.release()) == 0;
}

}  // namespace probed::probe
