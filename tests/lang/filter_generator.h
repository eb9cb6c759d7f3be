#pragma once
// Event filters, good or nearly so: a grammar with odd choices, then mutations of bytes. The same
// seed gives the same filters.

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace probed::lang::testing {

// A field that filters may name, and what is worth comparing it with: numbers, or quoted texts.
struct FilterSubject {
  std::string name;
  std::vector<std::string> operands;
  bool is_text = false;
};

class FilterGenerator {
 public:
  FilterGenerator(uint64_t seed, std::vector<FilterSubject> subjects)
      : random_(seed), subjects_(std::move(subjects)) {}

  // Accepted by the kernel, and safe to run there.
  std::string NextGood();
  // For the parser alone.
  std::string Next();

 private:
  using Choices = std::vector<std::string_view>;

  bool OneIn(unsigned n) { return random_() % n == 0; }
  size_t Below(size_t n) { return random_() % n; }
  std::string Pick(const Choices& choices) { return std::string(choices[Below(choices.size())]); }
  std::string Space() { return Pick({"", "", " ", "  ", "\t"}); }

  std::string Expression(unsigned depth);
  std::string Term(unsigned depth);
  std::string Predicate();
  std::string OddPredicate();
  std::string Value(const FilterSubject& subject, const std::string& op);
  std::string CpuList();
  std::string Mutate(std::string text);

  std::mt19937_64 random_;
  std::vector<FilterSubject> subjects_;
  bool good_ = false;
};

}  // namespace probed::lang::testing
