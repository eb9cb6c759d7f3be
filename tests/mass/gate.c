// Preloaded: a program with all its libraries in place waits for a line of its input before main.
#include <unistd.h>

__attribute__((constructor)) static void WaitForLine(void) {
  char byte = 0;
  if (write(STDERR_FILENO, "gate\n", 5) != 5) return;
  while (byte != '\n' && read(STDIN_FILENO, &byte, 1) == 1) {
  }
}
