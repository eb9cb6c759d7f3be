#include "engine/lang/filter_flow.h"

#include <utility>

namespace probed::lang {

void FilterFlow::Bind(const std::vector<Exit>& exits, uint32_t destination) {
  for (const Exit& exit : exits) {
    FilterOp& op = ops_[exit.op];
    (exit.outcome ? op.if_true : op.if_false) = destination;
  }
}

void FilterFlow::Predicate(FilterOp op, bool inverted) {
  const auto number = static_cast<uint32_t>(ops_.size());
  ops_.push_back(op);
  Add({number, {{number, !inverted}}, {{number, inverted}}});
}

void FilterFlow::Add(Part part) {
  auto& all = levels_.back().all;
  if (!all) {
    all = std::move(part);
    return;
  }
  Bind(all->if_true, part.start);
  all->if_true = std::move(part.if_true);
  all->if_false.insert(all->if_false.end(), part.if_false.begin(), part.if_false.end());
}

void FilterFlow::EndTerm() {
  Level& level = levels_.back();
  if (!level.all) return;
  Part term = *std::exchange(level.all, std::nullopt);
  if (!level.any) {
    level.any = std::move(term);
    return;
  }
  Part& any = *level.any;
  Bind(any.if_false, term.start);
  any.if_false = std::move(term.if_false);
  any.if_true.insert(any.if_true.end(), term.if_true.begin(), term.if_true.end());
}

void FilterFlow::Close() {
  EndTerm();
  Level level = std::move(levels_.back());
  levels_.pop_back();
  if (!level.any) return;
  if (level.inverted) std::swap(level.any->if_true, level.any->if_false);
  Add(*std::move(level.any));
}

void FilterFlow::Finish() {
  EndTerm();
  const auto& any = levels_.back().any;
  if (!any) return;
  Bind(any->if_true, static_cast<uint32_t>(ops_.size()));
  Bind(any->if_false, static_cast<uint32_t>(ops_.size()) + 1);
}

}  // namespace probed::lang
