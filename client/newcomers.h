#pragma once
// Processes that start to match a selection, read on a thread of its own. The controlling thread
// polls fd() and takes them.

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "client/api.h"

namespace probed::client {

class Newcomers {
 public:
  explicit Newcomers(std::unique_ptr<ProcessStream> stream);
  ~Newcomers();  // cancels
  Newcomers(const Newcomers&) = delete;
  Newcomers& operator=(const Newcomers&) = delete;

  // Readable when there is something to take.
  int fd() const { return wake_.get(); }
  // Those since the last time; at first, all that match already.
  std::vector<v1::Process> Take();
  // Why no more will come, told once; none while they may come.
  std::optional<RemoteError> TakeError();

 private:
  void Run();
  void Wake();

  std::unique_ptr<ProcessStream> stream_;
  UniqueFd wake_;
  std::atomic<bool> cancelled_ = false;
  std::mutex mutex_;
  std::vector<v1::Process> arrived_;  // guarded by mutex_
  std::optional<RemoteError> error_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace probed::client
