// A library that counts its own calls, its constructor's included.
static unsigned long calls;

__attribute__((noinline)) unsigned long plugin_work(unsigned long number) {
  return calls += number ? 1 : 0;
}

__attribute__((constructor)) static void begin(void) { plugin_work(1); }
