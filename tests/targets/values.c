// The program of the kernel differential: one call puts every kind of value within reach.
// values ROUNDS [wait]
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "gate.h"

#define NOINLINE __attribute__((noipa))

struct Node {
  struct Node* next;
  long value;
  char name[16];
};

// Offsets are the test's: see tests/kernel_differential/table.py.
struct Values {
  uint8_t u8;            // 0
  int8_t s8;             // 1
  uint16_t u16;          // 2
  int16_t s16;           // 4
  uint32_t u32;          // 8
  int32_t s32;           // 12
  uint64_t u64;          // 16
  int64_t s64;           // 24
  const char* text;      // 32
  const char* texts[4];  // 40
  char letters[8];       // 72
  char letter;           // 80
  struct Node* chain;    // 88
  void* null;            // 96
  const char* raw;       // 104: bytes that are not UTF-8, quotes, control characters
  const char* empty;     // 112
  const char* edge;      // 120: ends with its NUL at the end of the last readable page
  const char* cut;       // 128: runs into an unreadable page
  const char* longer;    // 136: 3000 characters
  uint64_t words[64];    // 144
};

static struct Node third = {NULL, -3, "third"};
static struct Node second = {&third, 22, "second"};
static struct Node first = {&second, 1111, "first"};
struct Values values = {
    .u8 = 0xfe, .s8 = -2, .u16 = 0xfffe, .s16 = -2, .u32 = 0xfffffffe, .s32 = -2,
    .u64 = 0xfffffffffffffffe, .s64 = -2, .text = "hello",
    .texts = {"one", "two", "three", NULL}, .letters = {'a', 'b', 'c', 'd', 'e', 'x', 'y', 'z'},
    .letter = 'Q', .chain = &first, .raw = "\x80\xff\"q\\\t\x01z", .empty = "",
};
uint64_t global_word = 0x1122334455667788;
const char global_text[] = "a constant of the program";

NOINLINE long probe_me(long a, struct Values* v, const char* text, long d, long e, long f) {
  __asm__ volatile("" ::: "memory");
  return a + v->u8 + text[0] + d + e - f;
}
NOINLINE int negative(int a) { return -a - 1; }
NOINLINE const char* pick(struct Values* v, int i) { return v->texts[i & 3]; }
NOINLINE long depth(int n) {
  if (n == 0) return 1;
  long below = depth(n - 1);
  __asm__ volatile("" ::: "memory");
  return below + 2;
}
NOINLINE long tail_end(long a) {
  __asm__ volatile("" ::: "memory");
  return a * 3;
}
NOINLINE long tail_start(long a) { return tail_end(a + 1); }
// A known frame for $stackN: nothing but constants on it.
NOINLINE long on_stack(long a, long b, long c, long d, long e, long f, long g, long h) {
  __asm__ volatile("" ::: "memory");
  return a + b + c + d + e + f + g * h;
}

static void FillEdges(void) {
  char* area = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(area + 4096, 4096, PROT_NONE);
  memcpy(area + 4096 - 5, "edge", 5);
  values.edge = area + 4096 - 5;
  memset(area + 2 * 4096, 'L', 3000);
  values.longer = area + 2 * 4096;
  char* other = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(other + 4096, 4096, PROT_NONE);
  memset(other + 4096 - 9, 'c', 9);
  values.cut = other + 4096 - 9;
  for (int i = 0; i < 64; ++i) values.words[i] = (uint64_t)(i + 1) * 0x0101010101010101;
}

int main(int argc, char** argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 1;
  long total = 0;
  FillEdges();
  WaitIfTold(argc, argv);
  for (int i = 0; i < rounds; ++i) {
    total += probe_me(i, &values, "world", 0x1234567890abcdef, -5, i * 1000L);
    total += negative(i) + depth(i) + tail_start(i) + on_stack(1, 2, 3, 4, 5, 6, 7, i);
    total += pick(&values, i) != NULL;
  }
  printf("rounds %d total %ld\n", rounds, total);
  return 0;
}
