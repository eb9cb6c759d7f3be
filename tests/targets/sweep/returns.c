// Every kind of return value of the System V ABI: registers, xmm, x87, memory.
#include <complex.h>

#include "sweep.h"

struct TwoWords { long a, b; };
struct Mixed { double d; long l; };
struct TwoDoubles { double a, b; };
struct Big { long words[5]; };
struct Small { char c; short s; };

SWEPT int sw_return_int(int v) { return v + 1; }
SWEPT _Bool sw_return_bool(int v) { return v > 3; }
SWEPT __int128 sw_return_int128(long v) { return (__int128)v * v * v * 1000000007; }
SWEPT float sw_return_float(float v) { return v * 1.5f; }
SWEPT double sw_return_double(double v) { return v / 4 + 1; }
SWEPT long double sw_return_long_double(long double v) { return v * 3 + 0.5L; }
SWEPT double _Complex sw_return_complex(double v) { return v + v * 2 * I; }
SWEPT long double _Complex sw_return_long_complex(long double v) { return v - v * 3 * I; }
SWEPT struct TwoWords sw_return_two_words(long v) { return (struct TwoWords){v, -v}; }
SWEPT struct Mixed sw_return_mixed(long v) { return (struct Mixed){v * 0.5, v * 2}; }
SWEPT struct TwoDoubles sw_return_two_doubles(double v) { return (struct TwoDoubles){v, v + 1}; }
SWEPT struct Big sw_return_big(long v) { return (struct Big){{v, v + 1, v + 2, v + 3, v + 4}}; }
SWEPT struct Small sw_return_small(int v) { return (struct Small){(char)v, (short)(v * 100)}; }
SWEPT void* sw_return_pointer(char* v) { return v + 5; }
SWEPT void sw_return_void(int* v) { *v += 7; }

SWEPT uint64_t sw_integers(long v) {
  int filled = 1;
  sw_return_void(&filled);
  __int128 wide = sw_return_int128(v);
  uint64_t sum = (uint64_t)wide ^ (uint64_t)(wide >> 64);
  sum += (uint64_t)sw_return_int((int)v) + sw_return_bool((int)v) + (uint64_t)filled;
  struct TwoWords pair = sw_return_two_words(v);
  struct Big big = sw_return_big(v);
  struct Small small = sw_return_small((int)v);
  for (int i = 0; i < 5; ++i) sum = sum * 7 + (uint64_t)big.words[i];
  sum += (uint64_t)(pair.a * 3 + pair.b) + (uint64_t)(small.c + small.s);
  return sum + (uint64_t)((char*)sw_return_pointer((char*)v) - (char*)v);
}

SWEPT uint64_t sw_reals(long v) {
  double sum = sw_return_float((float)v) + sw_return_double((double)v);
  sum += (double)sw_return_long_double((long double)v);
  double _Complex z = sw_return_complex((double)v);
  long double _Complex lz = sw_return_long_complex((long double)v);
  struct Mixed mixed = sw_return_mixed(v);
  struct TwoDoubles pair = sw_return_two_doubles((double)v);
  sum += creal(z) + cimag(z) * 10 + (double)creall(lz) + (double)cimagl(lz);
  return (uint64_t)((sum + mixed.d + (double)mixed.l + pair.a + pair.b) * 16 + 100000);
}

SWEPT uint64_t sw_check_returns(void) {
  uint64_t hash = 0;
  for (long v = 2; v < 8; ++v) hash = hash * 131 + sw_integers(v) + sw_reals(v);
  return hash;
}
