#pragma once
// Where data goes: standard output or a file, in large writes. Not thread-safe.
//
// A reader that went away (EPIPE) is no failure: `closed()` becomes true, later data is dropped,
// and the verb ends as if it had been interrupted.

#include <cstddef>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace probed::client {

class Output {
 public:
  // "-" or "" is standard output; a file is created or cut to nothing.
  static Result<Output> Open(const std::string& path);

  // Append to this, then call Commit.
  std::string& buffer() { return buffer_; }
  // Writes out when enough has gathered.
  void Commit();
  void Flush();

  bool closed() const { return closed_; }
  bool is_terminal() const { return is_terminal_; }
  // errno of a failed write other than EPIPE; 0 when all went well.
  int error_number() const { return error_number_; }

 private:
  Output(UniqueFd owned, int fd);

  UniqueFd owned_;
  int fd_;
  bool is_terminal_;
  bool closed_ = false;
  int error_number_ = 0;
  std::string buffer_;
};

}  // namespace probed::client
