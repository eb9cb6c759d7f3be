#pragma once
// Whose thread a tid of the kernel's records is. A record has no more than the tid, so /proc is
// asked when the record is read, at most once in a while for each thread; where the thread has gone
// meanwhile, the kernel's own list of names (saved_cmdlines). One thread.
//
// Tids are those of the daemon's process-id name space, which must be the initial one: the kernel
// records no others.

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

namespace probed::kernel {

struct ThreadOwner {
  int32_t pid = 0;  // 0: not known any more, or an idle thread
  std::array<char, 16> comm{};
};

class Threads {
 public:
  explicit Threads(std::string tracefs_directory) : tracefs_(std::move(tracefs_directory)) {}

  const ThreadOwner& Of(int32_t tid, uint64_t now_ns);

 private:
  struct Known {
    ThreadOwner owner;
    uint64_t asked_ns = 0;
  };
  void Ask(int32_t tid, ThreadOwner& owner) const;
  std::string SavedComm(int32_t tid) const;

  const std::string tracefs_;
  std::unordered_map<int32_t, Known> known_;
};

}  // namespace probed::kernel
