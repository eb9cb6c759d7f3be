#include "client/newcomers.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <iterator>
#include <utility>

namespace probed::client {

Newcomers::Newcomers(std::unique_ptr<ProcessStream> stream)
    : stream_(std::move(stream)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { Run(); }) {}

Newcomers::~Newcomers() {
  stream_->Cancel();
  thread_.join();
}

void Newcomers::Run() {
  v1::FindProcessesResponse response;
  while (stream_->Read(response)) {
    {
      std::lock_guard lock(mutex_);
      arrived_.insert(arrived_.end(),
                      std::make_move_iterator(response.mutable_processes()->begin()),
                      std::make_move_iterator(response.mutable_processes()->end()));
    }
    Wake();
  }
  if (auto end = stream_->Finish(); !end) {
    std::lock_guard lock(mutex_);
    error_ = std::move(end).error();
  }
  Wake();
}

void Newcomers::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

std::vector<v1::Process> Newcomers::Take() {
  uint64_t count;
  [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &count, sizeof count);
  std::lock_guard lock(mutex_);
  return std::exchange(arrived_, {});
}

std::optional<RemoteError> Newcomers::TakeError() {
  std::lock_guard lock(mutex_);
  return std::exchange(error_, std::nullopt);
}

}  // namespace probed::client
