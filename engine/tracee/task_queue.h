#pragma once
// Tasks for the tracer thread. Any thread may add.

#include <atomic>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace probed::tracee {

class TaskQueue {
 public:
  void Add(std::function<void()> task) {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    empty_.store(false);
  }

  // Those added meanwhile included: a task that waits for stops takes the wake-up meant for them.
  void RunAll() {
    while (!empty_.load()) {
      std::vector<std::function<void()>> tasks;
      {
        std::lock_guard lock(mutex_);
        tasks.swap(tasks_);
        empty_.store(true);
      }
      for (const auto& task : tasks)
        task();
    }
  }

 private:
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;
  std::atomic<bool> empty_ = true;
};

}  // namespace probed::tracee
