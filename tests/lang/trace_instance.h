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
  std::string Format(const std::string& group, const std::string& event) const;

 private:
  explicit TraceInstance(std::string path) : path_(std::move(path)) {}
  Status WriteEnable(const std::string& group, const std::string& event, const char* value);

  std::string path_;
};

// A whole tracefs file; empty if it cannot be read.
std::string ReadTracefs(const std::string& path);

}  // namespace probed::lang::testing
