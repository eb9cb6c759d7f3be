#pragma once
// One event as an instance has it: its switch, filter and triggers. What we have defined or changed
// is undone when it goes. Not thread-safe.

#include <string>
#include <vector>

#include "engine/kernel/definition_line.h"
#include "engine/kernel/tracefs.h"

namespace probed::kernel {

class Event {
 public:
  // `directory`: of the instance. `defined`: by us, so that we take it away.
  Event(const Tracefs& tracefs, const std::string& directory, KernelName name, bool defined);
  Event(Event&&) noexcept;
  Event& operator=(Event&&) = delete;
  ~Event();

  const KernelName& name() const { return name_; }
  bool defined() const { return defined_; }

  Result<std::string> ReadFormat() const { return Read("format"); }
  Status SetEnabled(bool enabled);
  // "0": none. When it is refused the event has the filter that it had before.
  Status SetFilter(const std::string& filter);
  std::string filter() const { return filter_; }
  // A line of the trigger file; with '!' in front it takes one away.
  Status WriteTrigger(const std::string& line);
  std::vector<std::string> Triggers() const;  // as the kernel shows them

  // What the histograms of its triggers have counted, as the kernel shows it.
  Result<std::string> ReadHistogram() const { return Read("hist"); }

  // Off, without filter and triggers; these stay for as long as other events' refer to them.
  void Quiet();
  // Quiet, and a definition of ours taken away; true when that is so. A definition stays for as
  // long as something else needs it: an event probe on it, a trigger that names it.
  bool Remove();

 private:
  Result<std::string> Read(std::string_view file) const;
  Status Write(std::string_view file, std::string_view text) const;

  Tracefs tracefs_;
  std::string directory_;  // of the event; empty: moved from
  KernelName name_;
  bool defined_;  // and not gone yet
  bool has_triggers_ = false;
  std::string filter_;
};

}  // namespace probed::kernel
