#include "client/newcomers.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <iterator>
#include <utility>

namespace probed::client {
namespace {

RemoteError DaemonEndedIt() {
  return {.error = {.code = ErrorCode::kUnavailable,
                    .reason = "STREAM_ENDED",
                    .message = "the daemon ended the stream of processes",
                    .hint = "it was stopped, or is about to",
                    .metadata = {}},
          .verdicts = {}};
}

}  // namespace

Newcomers::Newcomers(std::unique_ptr<ProcessStream> stream)
    : stream_(std::move(stream)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { Run(); }) {}

Newcomers::~Newcomers() {
  cancelled_ = true;
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
  auto end = stream_->Finish();
  if (end && !cancelled_) end = tl::unexpected(DaemonEndedIt());
  if (!end) {
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
