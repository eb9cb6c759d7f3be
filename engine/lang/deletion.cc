#include "engine/lang/deletion.h"

#include <cerrno>
#include <string_view>

#include "engine/lang/line.h"

namespace probed::lang {
namespace {

bool MatchesArguments(const Deletion& deletion, const JudgedLine& line) {
  const size_t count = deletion.head.size() - 1;
  if (line.argument_texts.size() < count) return false;
  for (size_t i = 0; i < count; ++i) {
    const std::string expected =
        line.definition.schema.fields[i].name + "=" + line.argument_texts[i];
    if (deletion.head[i + 1] != expected) return false;
  }
  return true;
}

}  // namespace

Judged<Deletion> ParseDeletion(const std::vector<std::string>& tokens) {
  const Refusal refusal{RefusalCode::kBadDeletion, EINVAL, 0, 0, {}, {}, {}};
  std::string_view name = tokens[0];
  if (!name.starts_with("-:")) return refusal;
  name.remove_prefix(2);
  Deletion deletion;
  const size_t slash = name.find('/');
  if (slash != std::string_view::npos) {
    deletion.group = name.substr(0, slash);
    name.remove_prefix(slash + 1);
  } else if (name.empty()) {
    return refusal;
  }
  deletion.event = name;
  deletion.head.assign(tokens.begin() + 1, tokens.end());
  return deletion;
}

bool Matches(const Deletion& deletion, const JudgedLine& line) {
  const Definition& definition = line.definition;
  if (!deletion.event.empty() && deletion.event != definition.event) return false;
  if (deletion.group && *deletion.group != definition.group) return false;
  if (deletion.head.empty()) return true;
  return deletion.head[0] == Tokenize(definition.readback)[1] && MatchesArguments(deletion, line);
}

}  // namespace probed::lang
