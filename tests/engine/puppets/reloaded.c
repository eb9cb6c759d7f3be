// Loaded and unloaded by reloading.c, in which it counts its calls, from constructor to destructor.
extern unsigned long first_calls, second_calls;

__attribute__((noinline)) unsigned long first(unsigned long number) {
  ++first_calls;
  return number * 3 + 1;
}

__attribute__((noinline)) unsigned long second(unsigned long number) {
  ++second_calls;
  return number * 5 + 2;
}

// Needs no relocation: runs wherever the file is mapped.
__attribute__((noinline)) unsigned long pure(unsigned long number) {
  __asm__ volatile("" : "+r"(number));
  return number * 7 + 3;
}

__attribute__((constructor)) static void begin(void) { second(first(1)); }
__attribute__((destructor)) static void end(void) { second(first(2)); }
