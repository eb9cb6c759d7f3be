#include "engine/kernel/own_names.h"

#include "engine/lang/ctype.h"

namespace probed::kernel {
namespace {

bool IsNameByte(char c) {
  return lang::IsAlpha(c) || lang::IsDigit(c) || c == '_' || c == '-';
}

// Wherever `word` stands and is not a part of a longer name.
void ReplaceWord(std::string& text, const std::string& word, const std::string& by) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || !IsNameByte(word.front()) || !IsNameByte(text[at - 1]);
    const bool ends = end == text.size() || !IsNameByte(word.back()) || !IsNameByte(text[end]);
    const bool whole = begins && ends;
    if (whole) text.replace(at, word.size(), by);
    at += whole ? by.size() : 1;
  }
}

}  // namespace

void OwnNames::Add(const KernelName& written, const KernelName& name) {
  entries_.push_back({written, name});
}

std::string OwnNames::ToKernel(std::string text) const {
  for (const auto& [written, kernel] : entries_) {
    for (const char separator : {'.', ':', '/'})
      ReplaceWord(text, written.group + separator + written.event,
                  kernel.group + separator + kernel.event);
    if (written.group != kernel.group) continue;  // synthetic ones have one group
    ReplaceWord(text, ")." + written.event + "(", ")." + kernel.event + "(");
    ReplaceWord(text, "trace(" + written.event, "trace(" + kernel.event);
  }
  return text;
}

std::string ToWritten(std::string text, const Owner& owner) {
  const std::string prefix = GroupPrefix(owner);
  for (size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at))
    text.erase(at, prefix.size());
  return text;
}

}  // namespace probed::kernel
