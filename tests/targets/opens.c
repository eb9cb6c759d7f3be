// opens FOLDER: for each line "N" of standard input opens N files by turns, FOLDER/there and
// FOLDER/missing, and tells what it got. Ends with its input.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Its value is what the system call has returned.
__attribute__((noipa)) long open_one(const char* path) {
  const int fd = open(path, O_RDONLY);
  return fd < 0 ? -errno : fd;
}

int main(int argc, char** argv) {
  char paths[2][4096], line[64];
  snprintf(paths[0], sizeof(paths[0]), "%s/there", argc > 1 ? argv[1] : ".");
  snprintf(paths[1], sizeof(paths[1]), "%s/missing", argc > 1 ? argv[1] : ".");
  puts("ready");
  fflush(stdout);
  while (fgets(line, sizeof(line), stdin) != NULL) {
    long last[2] = {0, 0};
    const long rounds = atol(line);
    for (long i = 0; i < rounds; ++i) {
      last[i % 2] = open_one(paths[i % 2]);
      if (last[i % 2] >= 0) close((int)last[i % 2]);
    }
    printf("opened %ld there %ld missing %ld\n", rounds, last[0], last[1]);
    fflush(stdout);
  }
  return 0;
}
