#include "client/cli.h"

int main(int argc, char** argv) {
  return probed::client::RunCommandLine(argc, argv);
}
