// Functions that return in many ways. Each call is counted by who waits for its return, with the
// value that came back: "NAME COUNT SUM" for each at the end.
// Usage: leaves ROUNDS
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))

struct tally {
  const char* name;
  unsigned long count;
  long sum;
};
static struct tally early_t = {"early"}, dive_t = {"dive"}, choose_t = {"choose"},
                    tail_t = {"tail"}, seldom_t = {"seldom"}, over_t = {"over"},
                    landed_t = {"landed"}, tiny_t = {"tiny"};

static long count(struct tally* tally, long value) {
  __asm__ volatile("" : "+r"(value));  // or the call above would be one in tail position
  ++tally->count;
  tally->sum += value;
  return value;
}

volatile long sink;
static jmp_buf back;

NOINLINE void nothing(void) {
  __asm__ volatile("");
}

NOINLINE long tiny(long n) {
  __asm__ volatile("" : "+r"(n));
  return n;
}

NOINLINE long early(long n) {
  if (n % 7 == 0) return -n;
  sink = n;
  if (n % 5 == 0) return n * 3;
  for (long i = 0; i < n; ++i) {
    sink += i;
    if (i == 11) return sink;
  }
  nothing();
  return n + 1;
}

NOINLINE long dive(long n) {
  if (n == 0) return 1;
  long below = count(&dive_t, dive(n - 1));
  if (n % 2 == 0) return below - 3;
  return below + 7;
}

// A table of jumps.
NOINLINE long choose(long n) {
  switch (n) {
    case 0:
      nothing();
      return 10;
    case 1:
      return sink;
    case 2:
      sink = n;
      return 12;
    case 3:
      nothing();
      return sink + 3;
    case 4:
      nothing();
      sink = 5;
      return 14;
    case 5:
      return -15;
    case 6:
      sink += 2;
      return sink;
    default:
      return 1;
  }
}

NOINLINE long landed(long n) {
  sink = n;
  return n * 5;
}

// At -O2 a jump to landed: the return is that one's.
NOINLINE long tail(long n) {
  if (n % 3 == 0) return n;
  ++landed_t.count;
  landed_t.sum += (n + 1) * 5;
  return landed(n + 1);
}

NOINLINE __attribute__((cold)) long rare(long n) {
  sink = n;
  return n / 2;
}

// A part of it is set aside (seldom.cold).
NOINLINE long seldom(long n) {
  if (__builtin_expect(n % 13 == 0, 0)) {
    sink = rare(n);
    sink = rare(sink + 1);
    return sink - 4;
  }
  sink = n;
  nothing();
  return n ^ 5;
}

// Left by longjmp(3) for every third.
NOINLINE long over(long n) {
  nothing();
  if (n % 3 == 0) longjmp(back, 1);
  return n + 2;
}

// Where from a function was called, as whoever walks the stack sees it.
NOINLINE int called_from_here(void) {
  nothing();
  extern int main(int, char**);
  unsigned long distance = (unsigned long)__builtin_return_address(0) - (unsigned long)&main;
  return distance < 4096;
}

int main(int argc, char** argv) {
  long rounds = argc > 1 ? atol(argv[1]) : 10;
  for (volatile long i = 1; i <= rounds; ++i) {
    count(&tiny_t, tiny(i));
    count(&early_t, early(i));
    count(&dive_t, dive(i % 20));
    count(&choose_t, choose(i % 9));
    count(&tail_t, tail(i));
    count(&seldom_t, seldom(i));
    if (setjmp(back) == 0) count(&over_t, over(i));
    if (!called_from_here()) puts("called from elsewhere");
  }
  struct tally* all[] = {&tiny_t, &early_t,  &dive_t, &choose_t,
                         &tail_t, &seldom_t, &over_t, &landed_t};
  for (unsigned i = 0; i < sizeof all / sizeof *all; ++i)
    printf("%s %lu %ld\n", all[i]->name, all[i]->count, all[i]->sum);
  return 3;
}
