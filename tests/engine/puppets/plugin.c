// A library that counts its own calls, its constructor's included.
static unsigned long calls;

__attribute__((noinline)) unsigned long plugin_work(unsigned long number) {
  return calls += number ? 1 : 0;
}

// A tracepoint's semaphore, as <sys/sdt.h> makes them; the constructor's call tells its value.
volatile unsigned short plugin_semaphore __attribute__((section(".probes"))) = 0;

__attribute__((constructor)) static void begin(void) { plugin_work(1 + plugin_semaphore); }
