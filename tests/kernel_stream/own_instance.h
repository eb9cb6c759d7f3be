#pragma once
// A tracefs instance of the test's own, and uprobe events in a group of its own.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/kernel/tracefs.h"

namespace probed::kernel::testing {

class OwnInstance {
 public:
  // Nothing: there is no tracefs that may be written.
  static std::optional<OwnInstance> Create(const std::string& name);
  OwnInstance(OwnInstance&& other) noexcept;
  OwnInstance& operator=(OwnInstance&&) = delete;
  ~OwnInstance();  // switches its events off and takes the definitions away

  const Tracefs& tracefs() const { return tracefs_; }
  std::string directory() const { return tracefs_.Path(directory_); }
  std::string Format(const std::string& group, const std::string& event) const;
  // Files of the instance. False: the kernel refuses.
  bool Write(const std::string& file, const std::string& text) const;
  std::string Read(const std::string& file) const;
  bool Enable(const std::string& event) const { return Write("events/" + event + "/enable", "1"); }
  bool Disable(const std::string& event) const { return Write("events/" + event + "/enable", "0"); }
  // A line of uprobe_events, whose event is GROUP/EVENT.
  bool Define(const std::string& line, const std::string& event);
  // Over all CPUs, of per_cpu/cpuN/stats ("entries", "overrun").
  uint64_t Statistic(const std::string& name) const;
  // The lines of `trace`, without its header.
  std::vector<std::string> Trace() const;

 private:
  OwnInstance(Tracefs tracefs, std::string directory)
      : tracefs_(std::move(tracefs)), directory_(std::move(directory)) {}

  Tracefs tracefs_;
  std::string directory_;  // relative; empty when moved from
  std::vector<std::string> events_;
};

}  // namespace probed::kernel::testing
