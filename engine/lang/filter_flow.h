#pragma once
// Turns the &&, ||, ! and parentheses around predicates into jumps. Pure.

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/lang/filter_code.h"

namespace probed::lang {

// Operands and operators are told in the order of the text. && binds tighter than ||; an operator
// without a second operand counts for nothing.
class FilterFlow {
 public:
  explicit FilterFlow(std::vector<FilterOp>& ops) : ops_(ops), levels_(1) {}

  void Predicate(FilterOp op, bool inverted);
  void Open(bool inverted) { levels_.push_back({inverted, {}, {}}); }
  void Close();
  void Or() { EndTerm(); }
  // Binds what is left: to the end of `ops`, and to one past it.
  void Finish();
  bool at_top() const { return levels_.size() == 1; }

 private:
  // An exit of an operation that has no destination yet: its number, and which of the two.
  struct Exit {
    uint32_t op;
    bool outcome;
  };
  struct Part {
    uint32_t start = 0;
    std::vector<Exit> if_true;
    std::vector<Exit> if_false;
  };
  struct Level {
    bool inverted = false;
    std::optional<Part> any;  // what has been ||-ed
    std::optional<Part> all;  // what has been &&-ed since
  };

  void Add(Part part);
  void EndTerm();
  void Bind(const std::vector<Exit>& exits, uint32_t destination);

  std::vector<FilterOp>& ops_;
  std::vector<Level> levels_;
};

}  // namespace probed::lang
