// Self-checking functions for the whole-function sweeps. Each Check* computes a number in a way
// that is wrong at once if one of its instructions runs twice, not at all, or with changed state.
// Functions to be swept are named sw_*; they are never inlined.
#pragma once
#include <stdint.h>

#if defined(__clang__)
#define SWEPT __attribute__((noinline, used))
#else
#define SWEPT __attribute__((noipa, used))
#endif

struct Check {
  const char* name;
  uint64_t (*run)(void);
  uint64_t expected;
};

uint64_t sw_check_loops(void);
uint64_t sw_check_jumps(void);
uint64_t sw_check_strings(void);
uint64_t sw_check_vectors(void);
uint64_t sw_check_calls(void);
uint64_t sw_check_longjmp(void);
uint64_t sw_check_returns(void);
uint64_t sw_check_red_zone(void);
uint64_t sw_check_forms(void);
uint64_t sw_check_atomics(void);
uint64_t sw_check_system_call(void);
uint64_t sw_check_x87(void);
uint64_t sw_check_rip_relative(void);
