#pragma once
// Memory that fetch programs stumble over: text, pointers and numbers on pages of which some are
// missing, unreadable, or behind the end of their file.

#include <cstdint>
#include <random>

#include "tests/detour/installed_detour.h"

namespace probed::detour::testing {

class HoledMemory {
 public:
  explicit HoledMemory(uint64_t seed);
  ~HoledMemory();

  // Mostly readable places; often just before a hole, sometimes no address at all.
  uint64_t Address();
  uint64_t Below(uint64_t limit) { return random_() % limit; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  std::mt19937_64& random() { return random_; }

 private:
  void Fill(uint64_t page);
  void MakeHoles();

  std::mt19937_64 random_;
  Mapping memory_;
};

}  // namespace probed::detour::testing
