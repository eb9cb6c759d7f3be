#pragma once
// A tracefs instance of our own, and one uprobe event in it.

#include <string>

#include "base/result.h"

namespace probed::lang::testing {

class TraceInstance {
 public:
  static Result<TraceInstance> Create(const std::string& name);
  TraceInstance(TraceInstance&& other) noexcept : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  TraceInstance& operator=(TraceInstance&&) = delete;
  ~TraceInstance();

  Status Enable(const std::string& group, const std::string& event);
  Status Disable(const std::string& group, const std::string& event);
  // The records so far, without the header; the buffer is emptied.
  std::string TakeTrace();
  std::string Format(const std::string& group, const std::string& event) const {
    return ReadEventFile(group, event, "format");
  }
  // A file of an event's directory: its text, and what a write of `bytes` says (an errno, or 0).
  std::string ReadEventFile(const std::string& group, const std::string& event,
                            const char* name) const;
  int WriteEventFile(const std::string& group, const std::string& event, const char* name,
                     const std::string& bytes) const;
  // The log since it was cleared, without the first time stamp.
  std::string ErrorLog() const;
  void ClearErrorLog() const;

 private:
  explicit TraceInstance(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

// A whole tracefs file; empty if it cannot be read.
std::string ReadTracefs(const std::string& path);

}  // namespace probed::lang::testing
