#pragma once
// Marks a thread as being shown to the observer: it is the callback's business, not to be resumed
// by anything the callback starts.

#include "engine/tracee/thread.h"

namespace probed::tracee {

class Callback {
 public:
  explicit Callback(Thread& thread) : thread_(thread) { thread_.in_callback = true; }
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  ~Callback() { thread_.in_callback = false; }

 private:
  Thread& thread_;
};

}  // namespace probed::tracee
