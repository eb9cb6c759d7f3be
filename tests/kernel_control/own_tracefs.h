#pragma once
// The real tracefs for tests: skipped where there is none that may be written.

#include <optional>
#include <string>
#include <vector>

#include "engine/kernel/tracefs.h"

namespace probed::kernel::testing {

// Nothing: the test is to be skipped.
std::optional<Tracefs> RealTracefs();

// Definitions whose group or event contains `word`.
std::vector<std::string> DefinitionsWith(const Tracefs& tracefs, const std::string& word);
// Instances whose name begins with `word`.
std::vector<std::string> InstancesWith(const Tracefs& tracefs, const std::string& word);

// A directory that looks like tracefs, with a mountinfo that says so.
class FakeTracefs {
 public:
  FakeTracefs();
  ~FakeTracefs();
  FakeTracefs(const FakeTracefs&) = delete;
  FakeTracefs& operator=(const FakeTracefs&) = delete;

  const std::string& root() const { return root_; }
  // A line of mountinfo for a file system of `type` at `point`.
  static std::string Mount(const std::string& type, const std::string& point,
                           const std::string& options = "rw");
  TracefsPlaces Places(const std::string& mountinfo, const std::string& lockdown = "") const;
  void MakeDirectory(const std::string& path) const;
  void Write(const std::string& path, const std::string& text) const;

 private:
  std::string root_;
};

}  // namespace probed::kernel::testing
