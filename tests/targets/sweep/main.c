// Runs every check and compares with what it should be; exit status 1 when one differs. The numbers
// are those on which 24 builds by two compilers agree. sw_main is where the reference tracer starts.
#include <stdio.h>

#include "../gate.h"
#include "sweep.h"

static const struct Check kChecks[] = {
    {"loops", sw_check_loops, 0x310d90d8319f0f0e},
    {"jumps", sw_check_jumps, 0x322ec37335eca85f},
    {"strings", sw_check_strings, 0x48eb3e0d1fc},
    {"vectors", sw_check_vectors, 0xbf8f783d647d11fd},
    {"calls", sw_check_calls, 0x5507b5c3c6cf},
    {"longjmp", sw_check_longjmp, 0x5},
    {"returns", sw_check_returns, 0xcef0630f46ce3c38},
    {"red_zone", sw_check_red_zone, 0x4ca510ad5223bb3f},
    {"forms", sw_check_forms, 0xc47fd52af2e0b0f1},
    {"atomics", sw_check_atomics, 0x37e21d9f1},
    {"system_call", sw_check_system_call, 0x6d},
    {"x87", sw_check_x87, 0x893b6e5cc16e7},
    {"rip_relative", sw_check_rip_relative, 0x1a7e3bf313},
};

SWEPT int sw_main(void) {
  int failures = 0;
  for (unsigned i = 0; i < sizeof kChecks / sizeof *kChecks; ++i) {
    uint64_t got = kChecks[i].run();
    int same = got == kChecks[i].expected;
    printf("%s 0x%llx %s\n", kChecks[i].name, (unsigned long long)got, same ? "ok" : "WRONG");
    failures += !same;
  }
  return failures != 0;
}

int main(int argc, char** argv) {
  WaitIfTold(argc, argv);
  return sw_main();
}
