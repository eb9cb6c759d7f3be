// Nested loops, a sieve, a sort and a checksum with published answers.
#include "sweep.h"

SWEPT uint32_t sw_crc32(const unsigned char* data, int size) {
  uint32_t crc = ~0u;
  for (int i = 0; i < size; ++i) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xedb88320u & -(crc & 1));
  }
  return ~crc;
}

SWEPT int sw_count_primes(int limit) {
  unsigned char composite[256] = {0};
  int count = 0;
  for (int i = 2; i < limit; ++i) {
    if (composite[i]) continue;
    ++count;
    for (int j = i * i; j < limit; j += i) composite[j] = 1;
  }
  return count;
}

SWEPT uint64_t sw_sort_hash(void) {
  int values[24];
  for (int i = 0; i < 24; ++i) values[i] = (i * 37 + 11) % 101;
  for (int i = 0; i < 24; ++i) {
    for (int j = i + 1; j < 24; ++j) {
      if (values[j] < values[i]) {
        int held = values[i];
        values[i] = values[j];
        values[j] = held;
      }
    }
  }
  uint64_t hash = 0;
  for (int i = 0; i < 24; ++i) hash = hash * 31 + (uint64_t)values[i];
  return hash;
}

SWEPT uint64_t sw_collatz(uint64_t n) {
  uint64_t steps = 0;
  while (n != 1) {
    n = n & 1 ? 3 * n + 1 : n / 2;
    ++steps;
  }
  return steps;
}

SWEPT uint64_t sw_check_loops(void) {
  uint64_t crc_ok = sw_crc32((const unsigned char*)"123456789", 9) == 0xcbf43926u;
  uint64_t primes_ok = sw_count_primes(200) == 46;
  uint64_t collatz_ok = sw_collatz(27) == 111;
  return sw_sort_hash() * (crc_ok && primes_ok && collatz_ok);
}
