// Opened and closed by loader.c.
static long calls;
long plugin_work(long n) {
  __asm__ volatile("" ::: "memory");
  ++calls;
  return n * 7 + calls;
}
