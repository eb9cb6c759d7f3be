// absent [wait]: passes the address of a page that nobody has provided yet (userfaultfd(2)) to
// look(), which does not read it, for each line that it is given. 77: there is no userfaultfd here.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gate.h"

__attribute__((noipa)) uint64_t look(const char* page) {
  __asm__ volatile("" ::: "memory");
  return (uint64_t)page % 4096 + 1;
}

static char* AbsentPage(void) {
  char* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct uffdio_api api = {.api = UFFD_API};
  struct uffdio_register range = {.range = {(uint64_t)page, 4096},
                                  .mode = UFFDIO_REGISTER_MODE_MISSING};
  long file = syscall(SYS_userfaultfd, O_CLOEXEC);
  if (page == MAP_FAILED || file < 0) return NULL;
  if (ioctl(file, UFFDIO_API, &api) != 0 || ioctl(file, UFFDIO_REGISTER, &range) != 0) return NULL;
  return page;
}

int main(int argc, char** argv) {
  char line[16];
  uint64_t looks = 0;
  const char* page = AbsentPage();
  if (page == NULL) return 77;
  WaitIfTold(argc, argv);
  while (fgets(line, sizeof line, stdin) != NULL) {
    looks += look(page);
    printf("looks %lu\n", looks);
    fflush(stdout);
  }
  return 0;
}
