#include "engine/lang/filter.h"

#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "engine/lang/ctype.h"
#include "engine/lang/filter_flow.h"
#include "engine/lang/filter_predicate.h"

namespace probed::lang {
namespace {

constexpr size_t kPage = 4096;  // kernel/trace/trace_events.c: event_filter_write()
// What calc_stack() of trace_events_filter.c returns reaches the caller as an error number.
constexpr int kTooManyCloseErrno = 1;
constexpr int kTooManyOpenErrno = 2;
constexpr int kMissingQuoteErrno = 3;

std::string_view TrimEnd(std::string_view text) {
  while (!text.empty() && IsSpace(text.back()))
    text.remove_suffix(1);
  return text;
}

std::string_view TrimStart(std::string_view text) {
  while (!text.empty() && IsSpace(text.front()))
    text.remove_prefix(1);
  return text;
}

// Parentheses and quotes, before anything else is looked at.
std::optional<FilterRefusal> CheckBalance(std::string_view text) {
  std::vector<size_t> opened;
  size_t quote = std::string_view::npos;
  bool has_predicate = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (IsSpace(c)) continue;
    if (quote != std::string_view::npos) {
      if (c == text[quote]) quote = std::string_view::npos;
    } else if (c == '(') {
      opened.push_back(i);
    } else if (c == ')') {
      if (opened.empty())
        return FilterRefusal{FilterError::kTooManyClose, kTooManyCloseErrno, {}, i};
      opened.pop_back();
    } else {
      if (c == '\'' || c == '"') quote = i;
      has_predicate = true;
    }
  }
  if (quote != std::string_view::npos) {
    return FilterRefusal{FilterError::kMissingQuote, kMissingQuoteErrno, {}, quote};
  }
  if (!opened.empty()) {
    return FilterRefusal{FilterError::kTooManyOpen, kTooManyOpenErrno, {}, opened.back()};
  }
  if (!has_predicate) return FilterRefusal{FilterError::kUnnamed, EINVAL, {}, 0};
  return std::nullopt;
}

class Parser {
 public:
  Parser(std::string_view text, const EventSchema& schema, const FilterRules& rules,
         FilterCode& code)
      : text_(text), schema_(schema), rules_(rules), code_(code), flow_(code.ops) {}

  std::optional<FilterRefusal> Parse();

 private:
  bool SkipToPredicate();
  std::optional<FilterRefusal> ReadPredicate();
  std::optional<FilterRefusal> ReadOperators();

  std::string_view text_;
  size_t at_ = 0;
  bool inverted_ = false;
  const EventSchema& schema_;
  const FilterRules& rules_;
  FilterCode& code_;
  FilterFlow flow_;
};

std::optional<FilterRefusal> Parser::Parse() {
  while (SkipToPredicate()) {
    if (auto refusal = ReadPredicate()) return refusal;
    if (auto refusal = ReadOperators()) return refusal;
  }
  if (!flow_.at_top()) return FilterRefusal{FilterError::kTooManyOpen, EINVAL, {}, text_.size()};
  if (code_.ops.empty()) return FilterRefusal{FilterError::kNoFilter, EINVAL, {}, text_.size()};
  flow_.Finish();
  return std::nullopt;
}

bool Parser::SkipToPredicate() {
  for (; at_ < text_.size(); ++at_) {
    if (IsSpace(text_[at_])) continue;
    if (text_[at_] == '(') {
      flow_.Open(std::exchange(inverted_, false));
      continue;
    }
    const std::string_view rest = text_.substr(at_);
    if (rest[0] != '!' || rest.starts_with("!=") || rest.starts_with("!~")) return true;
    inverted_ = !inverted_;
  }
  return false;
}

std::optional<FilterRefusal> Parser::ReadPredicate() {
  PredicateParser parser(text_, at_, schema_, rules_, code_);
  if (!parser.Parse()) return parser.refusal();
  flow_.Predicate(parser.op(), parser.inverted() != std::exchange(inverted_, false));
  at_ = parser.end();
  return std::nullopt;
}

// Any number of ')', then an operator or the end.
std::optional<FilterRefusal> Parser::ReadOperators() {
  for (; at_ < text_.size(); ++at_) {
    if (IsSpace(text_[at_])) continue;
    const std::string_view rest = text_.substr(at_);
    if (rest[0] == ')' && !flow_.at_top()) {
      flow_.Close();
      continue;
    }
    const bool is_or = rest.starts_with("||");
    if (!is_or && !rest.starts_with("&&")) {
      return FilterRefusal{FilterError::kTooManyPreds, EPERM, {}, at_};
    }
    if (is_or) flow_.Or();
    at_ += 2;
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

tl::expected<Filter, FilterRefusal> CompileFilter(std::string_view written,
                                                  const EventSchema& schema,
                                                  const FilterRules& rules) {
  const std::string_view text = TrimEnd(written.substr(0, written.find('\0')));
  if (written.size() >= kPage) {
    return tl::unexpected(FilterRefusal{FilterError::kTooLong, EINVAL, std::string(text), 0});
  }
  Filter filter;
  if (TrimStart(text) == "0") return filter;
  filter.text = text;
  auto refusal = CheckBalance(text);
  if (!refusal) refusal = Parser(text, schema, rules, filter.code).Parse();
  if (!refusal) return filter;
  refusal->text = text;
  return tl::unexpected(*std::move(refusal));
}

}  // namespace probed::lang
