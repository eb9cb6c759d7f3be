// String instructions with rep, SSE2, AVX2 and AVX-512 code, and the loops compilers vectorise.
#include <emmintrin.h>
#include <immintrin.h>
#include <string.h>

#include "sweep.h"

// What the wide forms answer, so that the sum is the same on a machine without them.
#define SW_AVX2_ANSWER 0x21002100e7e70021
#define SW_AVX512_ANSWER 0x9e8f573c7c95a939

SWEPT void sw_rep_movsb(void* to, const void* from, unsigned long size) {
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size)::"memory");
}

SWEPT void sw_rep_stosq(void* to, uint64_t value, unsigned long count) {
  __asm__ volatile("rep stosq" : "+D"(to), "+c"(count) : "a"(value) : "memory");
}

SWEPT unsigned long sw_repne_scasb(const char* text) {
  unsigned long left = ~0ul;
  __asm__ volatile("repne scasb" : "+D"(text), "+c"(left) : "a"(0) : "cc", "memory");
  return ~left - 1;
}

SWEPT int sw_repe_cmpsb(const char* one, const char* other, unsigned long size) {
  unsigned char equal;
  __asm__ volatile("repe cmpsb\n\tsete %0"
                   : "=q"(equal), "+S"(one), "+D"(other), "+c"(size)::"cc", "memory");
  return equal;
}

SWEPT uint64_t sw_vectorised_sum(const int* values, int count) {
  uint64_t sum = 0;
  for (int i = 0; i < count; ++i) sum += (uint32_t)(values[i] * 3 + 1);
  return sum;
}

SWEPT uint64_t sw_sse(const unsigned char* bytes) {
  __m128i all = _mm_loadu_si128((const __m128i*)bytes);
  __m128i mixed = _mm_add_epi8(_mm_shuffle_epi32(all, 0x1b), _mm_slli_epi64(all, 3));
  return (uint64_t)_mm_cvtsi128_si64(_mm_sad_epu8(mixed, _mm_setzero_si128())) +
         (uint64_t)_mm_movemask_epi8(mixed);
}

__attribute__((target("avx2"))) SWEPT uint64_t sw_avx2(const unsigned char* bytes) {
  __m256i all = _mm256_loadu_si256((const __m256i*)bytes);
  __m256i mixed = _mm256_xor_si256(_mm256_permute4x64_epi64(all, 0x1b), _mm256_srli_epi32(all, 5));
  uint64_t words[4];
  _mm256_storeu_si256((__m256i*)words, mixed);
  return words[0] ^ words[1] ^ words[2] ^ words[3];
}

__attribute__((target("avx512f,avx512vl,avx512bw"))) SWEPT uint64_t
sw_avx512(const unsigned char* bytes) {
  __m512i all = _mm512_loadu_si512(bytes);
  __mmask64 high = _mm512_movepi8_mask(all);
  __m512i mixed = _mm512_mask_add_epi8(all, high, all, _mm512_set1_epi8(3));
  mixed = _mm512_ternarylogic_epi64(mixed, all, _mm512_rol_epi64(all, 9), 0x96);
  return (uint64_t)_mm512_reduce_add_epi64(mixed) ^ high;
}

SWEPT uint64_t sw_check_strings(void) {
  char text[96], copy[96];
  int values[40];
  memset(text, 0, sizeof text);
  sw_rep_stosq(copy, 0x4142434445464748u, 12);
  sw_rep_movsb(text, copy, 50);
  for (int i = 0; i < 40; ++i) values[i] = i * i - 100;
  uint64_t hash = sw_repne_scasb(text);
  hash = hash * 100 + (uint64_t)sw_repe_cmpsb(text, copy, 50) * 10;
  hash += (uint64_t)sw_repe_cmpsb(text, copy, 51);
  return hash * 1000000000 + sw_vectorised_sum(values, 40) % 1000000000;
}

SWEPT uint64_t sw_check_vectors(void) {
  unsigned char bytes[64];
  for (int i = 0; i < 64; ++i) bytes[i] = (unsigned char)(i * 73 + 29);
  uint64_t hash = sw_sse(bytes);
  hash += __builtin_cpu_supports("avx2") ? sw_avx2(bytes) : SW_AVX2_ANSWER;
  hash += __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")
              ? sw_avx512(bytes)
              : SW_AVX512_ANSWER;
  return hash;
}
