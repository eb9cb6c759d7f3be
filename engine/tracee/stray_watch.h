#pragma once
// Tasks that traced ones have made with CLONE_UNTRACED (clone(2)): the kernel tells nobody of them,
// and they have our breakpoints. New ones are looked for by their numbers, which the kernel gives
// out in their order: 50 ms after they began at the latest.

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace probed::tracee {

class StrayWatch {
 public:
  // `found` is called on a thread of the watch's own, with tasks of which none is traced.
  using OnFound = std::function<void(const std::vector<pid_t>& strays)>;

  // `tracer`: the thread whose tracees' strays these are.
  void Start(pid_t tracer, OnFound found);
  StrayWatch() = default;
  StrayWatch(const StrayWatch&) = delete;
  StrayWatch& operator=(const StrayWatch&) = delete;
  ~StrayWatch();

  // Looks on only while there are tracees. Cheap when nothing changes. Any thread.
  void SetWanted(bool wanted);
  // Those that began since the last look, and those whose time it is to be tried again. Any thread.
  std::vector<pid_t> Look();
  // It could not be taken now. Any thread.
  void TryLater(pid_t task);

 private:
  void Run();
  void LookAgain(std::vector<pid_t>& strays);
  void Postpone(pid_t task, std::chrono::nanoseconds wait);

  pid_t tracer_ = 0;
  OnFound found_;
  std::mutex mutex_;                 // of a look
  pid_t last_ = 0;                   // the task with this number was looked at
  std::map<pid_t, uint64_t> later_;  // to be looked at again, when (MonotonicNow())
  std::mutex wake_mutex_;
  std::condition_variable changed_;
  std::atomic<bool> wanted_ = false;
  bool quit_ = false;
  std::thread thread_;
};

enum class Stray : uint8_t { kNone, kFree, kTracedByOthers };

// Whether that task was made by a tracee of `tracer`, or is a thread of its process, and lives.
Stray LookAtStray(pid_t tracer, pid_t task);

}  // namespace probed::tracee
