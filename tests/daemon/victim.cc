// Calls tick() as often as each line of its input says, then prints how often it has been called.

#include <cstdint>
#include <cstdio>

extern "C" {

volatile uint64_t calls = 0;

__attribute__((noinline)) uint64_t tick(uint64_t number, const char* text) {
  calls = calls + 1;
  return number * 2 + static_cast<uint64_t>(text[0]);
}

__attribute__((noinline)) uint64_t tock(uint64_t number) {
  calls = calls + 1;
  return number;
}
}

int main() {
  unsigned long count = 0;
  std::puts("ready");
  std::fflush(stdout);
  while (std::scanf("%lu", &count) == 1) {
    for (unsigned long i = 0; i < count; ++i)
      tick(i, "hello");
    tock(count);
    std::printf("%lu\n", static_cast<unsigned long>(calls));
    std::fflush(stdout);
  }
}
