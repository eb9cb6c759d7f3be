#pragma once
// Probe lines, mostly good or nearly so: a grammar with odd choices, then mutations of bytes.
// The same seed gives the same lines.

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace probed::lang::testing {

class LineGenerator {
 public:
  // `tag` starts every group, `paths` are spellings of files, good and bad.
  LineGenerator(uint64_t seed, std::string tag, std::vector<std::string> paths)
      : random_(seed), tag_(std::move(tag)), paths_(std::move(paths)) {}

  // A definition or a deletion, without newlines and NULs. Deletions name groups of `tag` only.
  std::string Next();

  // A definition as it is listed, for later deletions to name.
  void Remember(const std::string& listed);

 private:
  using Choices = std::vector<std::string_view>;

  bool OneIn(unsigned n) { return random_() % n == 0; }
  size_t Below(size_t n) { return random_() % n; }
  std::string_view Pick(const Choices& choices) { return choices[Below(choices.size())]; }
  // Mostly a usual choice; on a clean line always.
  std::string_view Mix(const Choices& usual, const Choices& odd) {
    return Pick(IsOdd(6) ? odd : usual);
  }
  bool IsOdd(unsigned n) { return !clean_ && OneIn(n); }

  std::string Definition();
  std::string Deletion();
  std::string Kind();
  std::string Group();
  std::string Event();
  std::string Place();
  std::string Number();
  std::string Argument();
  std::string ManyArguments();
  std::string Fetch(unsigned depth);
  std::string Load(unsigned depth);
  std::string Constant();
  std::string Type();
  std::string Bitfield();
  std::string Mutate(std::string line);

  std::mt19937_64 random_;
  bool clean_ = false;  // the line being made has no odd choices
  std::string tag_;
  std::vector<std::string> paths_;
  std::vector<std::string> recent_;  // definitions to repeat with changes
  std::vector<std::string> listed_;
};

}  // namespace probed::lang::testing
