#pragma once
// One predicate of a filter, FIELD OP VALUE. Pure.

#include <cstddef>
#include <string_view>

#include "engine/lang/filter.h"
#include "engine/lang/filter_field.h"

namespace probed::lang {

enum class FilterOperator : uint8_t {
  kGlob,
  kNotEqual,
  kEqual,
  kLessEqual,
  kLess,
  kGreaterEqual,
  kGreater,
  kAnd
};

// Reads the predicate at `begin` of `text`; patterns and sets go to `code`.
class PredicateParser {
 public:
  PredicateParser(std::string_view text, size_t begin, const EventSchema& schema,
                  const FilterRules& rules, FilterCode& code)
      : text_(text), at_(begin), schema_(schema), rules_(rules), code_(code) {}

  bool Parse();  // false: see refusal()
  const FilterRefusal& refusal() const { return refusal_; }
  const FilterOp& op() const { return op_; }
  bool inverted() const { return inverted_; }  // true when the operation is not
  size_t end() const { return at_; }

 private:
  bool Refuse(FilterError error, size_t index);
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Take(std::string_view word);
  void SkipSpace();
  std::string_view TakeAlnum();
  bool ReadField();
  bool ReadOperator();
  bool ReadValue();
  bool ReadFunction();
  bool ReadCpus();
  bool CompareWithSet(FilterSet set);
  void CompareWithMany(FilterSet set);
  bool ReadText(char quote);
  bool ReadNumber();
  bool ReadInteger(std::string_view digits);
  bool ReadDecimal(std::string_view digits);
  bool TakesNumbers(size_t index);
  void Compare(uint64_t value);

  std::string_view text_;
  size_t at_;
  const EventSchema& schema_;
  const FilterRules& rules_;
  FilterCode& code_;

  FilterField field_;
  FilterOperator operator_ = FilterOperator::kEqual;
  bool function_ = false;
  FilterOp op_;
  bool inverted_ = false;
  FilterRefusal refusal_;
};

}  // namespace probed::lang
