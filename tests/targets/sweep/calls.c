// Recursion, mutual tail calls, varargs, nested functions with a static chain, longjmp.
#include <setjmp.h>
#include <stdarg.h>

#include "sweep.h"

SWEPT int sw_ackermann(int m, int n) {
  if (m == 0) return n + 1;
  if (n == 0) return sw_ackermann(m - 1, 1);
  return sw_ackermann(m - 1, sw_ackermann(m, n - 1));
}

int sw_odd(unsigned n);
SWEPT int sw_even(unsigned n) { return n == 0 ? 1 : sw_odd(n - 1); }
SWEPT int sw_odd(unsigned n) { return n == 0 ? 0 : sw_even(n - 1); }

SWEPT long sw_sum(int count, ...) {
  va_list list;
  va_start(list, count);
  long sum = 0;
  for (int i = 0; i < count; ++i) sum = sum * 3 + va_arg(list, long);
  va_end(list);
  return sum;
}

SWEPT double sw_sum_doubles(int count, ...) {
  va_list list;
  va_start(list, count);
  double sum = 0;
  for (int i = 0; i < count; ++i) sum = sum * 2 + va_arg(list, double);
  va_end(list);
  return sum;
}

SWEPT long sw_ten(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j) {
  return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j;
}

SWEPT int sw_apply(int (*function)(int), int value) { return function(value) + function(value + 1); }

#if defined(__clang__)
SWEPT int sw_closure(int base) { return 2 * base + 21; }  // clang has no nested functions
#else
SWEPT int sw_closure(int base) {
  int seen = 0;
  __attribute__((noinline)) int add(int value) {
    ++seen;
    return base + value;
  }
  return sw_apply(add, 9) + seen;
}
#endif

SWEPT uint64_t sw_check_calls(void) {
  uint64_t hash = (uint64_t)sw_ackermann(2, 3);
  hash = hash * 10 + (uint64_t)sw_even(40) * 2 + (uint64_t)sw_odd(17);
  hash = hash * 10000 + (uint64_t)sw_sum(8, 1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L);
  hash = hash * 1000 + (uint64_t)sw_sum_doubles(4, 1.0, 2.0, 3.0, 4.0);
  hash = hash * 1000 + (uint64_t)sw_ten(1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
  return hash * 100 + (uint64_t)sw_closure(11);
}

static jmp_buf sw_escape;

SWEPT void sw_dig(int depth) {
  if (depth == 0) longjmp(sw_escape, 1);
  if (depth > 0) sw_dig(depth - 1);
  __asm__ volatile("" ::: "memory");  // not a tail call
}

SWEPT uint64_t sw_check_longjmp(void) {
  volatile uint64_t escapes = 0;
  for (volatile int i = 0; i < 5; ++i) {
    if (setjmp(sw_escape) == 0) {
      sw_dig(i);
    } else {
      ++escapes;
    }
  }
  return escapes;
}
