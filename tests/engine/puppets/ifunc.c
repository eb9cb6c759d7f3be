// "where" prints the address to which calls of strlen go, "call" makes 100 and prints how many, "own"
// calls an IFUNC of this program.
#include <stdio.h>
#include <string.h>

static long first(void) { return 7; }
static long second(void) { return 8; }
static int unwanted;
static long (*choose(void))(void) { return unwanted ? second : first; }
long own(void) __attribute__((ifunc("choose")));

int main(void) {
  char line[64], text[64] = "some text";
  size_t (*volatile length)(const char*) = strlen;
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin)) {
    int calls = 0;
    if (line[0] == 'w') printf("%lx\n", (unsigned long)length);
    if (line[0] == 'o') printf("%ld\n", own());
    if (line[0] != 'c') continue;
    for (int i = 0; i < 100; ++i) calls += length(text) == 9;
    printf("%d\n", calls);
  }
  return 0;
}
