// "N": throws N times through probed frames, rethrows, catches; prints how often it was caught.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

struct Guard {
  long& count;
  ~Guard() { ++count; }
};
static long guards;

__attribute__((noinline)) long thrower(long depth) {
  Guard guard{guards};
  if (depth == 0) throw std::runtime_error("deep");
  return 1 + thrower(depth - 1);
}

__attribute__((noinline)) long rethrower(long depth) {
  try {
    return thrower(depth);
  } catch (const std::exception&) {
    throw;
  }
}

__attribute__((noinline)) long outer(long number) {
  try {
    return rethrower(5);
  } catch (const std::runtime_error&) {
    return number;
  }
}

int main() {
  char line[64];
  setvbuf(stdout, nullptr, _IOLBF, 0);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin)) {
    long caught = 0;
    for (long i = 1; i <= atol(line); ++i)
      caught += outer(i) == i;
    printf("%ld %ld\n", caught, guards);
  }
  return 0;
}
