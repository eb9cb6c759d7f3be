#include "elf/cxx_name.h"

#include <cctype>

namespace probed::elf {
namespace {

bool IsIdentifierCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}

// Position of the bracket that the one at `close` closes; npos when unbalanced.
size_t OpeningOf(std::string_view text, size_t close) {
  int depth = 0;
  for (size_t i = close + 1; i-- > 0;) {
    if (text[i] == ')' || text[i] == '>') ++depth;
    if (text[i] == '(' || text[i] == '<') --depth;
    if (depth == 0) return i;
  }
  return std::string_view::npos;
}

bool EndsWithOperator(std::string_view text) {
  constexpr std::string_view kWord = "operator";
  if (!text.ends_with(kWord)) return false;
  return text.size() == kWord.size() ||
         !IsIdentifierCharacter(text[text.size() - kWord.size() - 1]);
}

// Without a return type: what follows the last space outside of brackets. "operator new" and
// conversion operators contain a space of their own.
std::string_view WithoutReturnType(std::string_view text) {
  if (text.find("operator") != std::string_view::npos) return text;
  int depth = 0;
  for (size_t i = text.size(); i-- > 0;) {
    if (text[i] == ')' || text[i] == '>') ++depth;
    if (text[i] == '(' || text[i] == '<') --depth;
    if (text[i] == ' ' && depth == 0) return text.substr(i + 1);
  }
  return text;
}

}  // namespace

std::string_view WithoutSignature(std::string_view demangled) {
  // Clones (" [clone .cold]") are no other spelling of the function: keep them as they are.
  if (demangled.ends_with(']')) return demangled;
  size_t close = demangled.rfind(')');
  if (close == std::string_view::npos) return demangled;
  // "(anonymous namespace)::f" ends in a name, not in a parameter list.
  if (demangled.find("::", close) != std::string_view::npos) return demangled;
  size_t open = OpeningOf(demangled, close);
  if (open == std::string_view::npos || open == 0) return demangled;
  std::string_view name = demangled.substr(0, open);
  if (EndsWithOperator(name)) return demangled;  // "operator()" without parameters
  return WithoutReturnType(name);
}

std::string_view WithoutTemplateArguments(std::string_view name) {
  if (!name.ends_with('>')) return name;
  size_t open = OpeningOf(name, name.size() - 1);
  if (open == std::string_view::npos || open == 0) return name;
  return EndsWithOperator(name.substr(0, open)) ? name : name.substr(0, open);
}

std::string_view LastIdentifier(std::string_view name) {
  if (name.find("operator") != std::string_view::npos) return {};
  std::string_view bare = WithoutTemplateArguments(WithoutSignature(name));
  size_t start = bare.size();
  while (start > 0 && IsIdentifierCharacter(bare[start - 1]))
    --start;
  return bare.substr(start);
}

}  // namespace probed::elf
