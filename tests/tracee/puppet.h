#pragma once
// A small program of this directory, run as a child with pipes for its standard input and output.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace probed::tracee {

class Puppet {
 public:
  // `name` is a file in the puppets directory of the build.
  explicit Puppet(const std::string& name, std::vector<std::string> arguments = {});
  Puppet(const Puppet&) = delete;
  Puppet& operator=(const Puppet&) = delete;
  ~Puppet();  // kills and reaps it

  pid_t pid() const { return pid_; }
  // One line without its end; empty when none came within ten seconds.
  std::string ReadLine();
  // The number after `word` in the next line.
  uint64_t ReadNumber(const std::string& word, int base = 10);
  void Send(char byte = 'g');
  void CloseInput() { input_.Reset(); }
  // The next wait status its parent sees (ends, stops, continuations), or nothing within ten
  // seconds.
  std::optional<int> NextChange();
  // The wait status of its end, or nothing when ten seconds pass without a change.
  std::optional<int> WaitForEnd();

  static std::string PathOf(const std::string& name);

  struct Report {
    pid_t pid = 0;
    int status = 0;
  };

 private:
  std::optional<Report> NextReport();

  pid_t keeper_ = -1;
  pid_t pid_ = -1;
  bool ended_ = false;
  UniqueFd input_, output_, reports_;
  std::string buffered_;
};

// Polls until `condition` holds or ten seconds are over; whether it holds.
template <class Condition>
bool Eventually(Condition condition) {
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
  }
  return true;
}

}  // namespace probed::tracee
