#pragma once
// Tasks that traced ones have made with CLONE_UNTRACED (clone(2)): the kernel tells nobody of them,
// and they have our breakpoints. New ones are looked for by their numbers, which the kernel gives
// out in their order: 50 ms after they began at the latest.

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <functional>
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
  // Those that began since the last look. Any thread.
  std::vector<pid_t> Look();

 private:
  void Run();

  pid_t tracer_ = 0;
  OnFound found_;
  std::mutex mutex_;  // of a look
  pid_t last_ = 0;    // the task with this number was looked at
  std::mutex wake_mutex_;
  std::condition_variable changed_;
  std::atomic<bool> wanted_ = false;
  bool quit_ = false;
  std::thread thread_;
};

// Whether that task, untraced, was made by a tracee of `tracer`, or is a thread of its process.
bool IsStrayOf(pid_t tracer, pid_t task);

}  // namespace probed::tracee
