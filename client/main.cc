#include "base/standard_fds.h"
#include "client/cli.h"

int main(int argc, char** argv) {
  probed::OpenStandardFds();
  return probed::client::RunCommandLine(argc, argv);
}
