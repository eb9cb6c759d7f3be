#pragma once
// The real uprobe_events, asked line by line.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace probed::lang::testing {

struct KernelAnswer {
  int error_number = 0;
  std::optional<std::string> message;
  std::optional<int> caret;
};

class KernelUprobes {
 public:
  // Mounts tracefs if need be. Fails where the kernel has no uprobe events.
  static Result<KernelUprobes> Open();

  // Writes `line` with a newline. `command` is how its log entry would echo it: others may be using
  // the log at the same time, and it keeps eight entries only.
  KernelAnswer Put(const std::string& line, const std::string& command);

  // The listed definitions that hold `tag`, oldest first.
  std::vector<std::string> List(const std::string& tag) const;

  // Kernels before 6.2, by the README in tracefs: other words and carets for the same refusals, and
  // no type char.
  bool IsOlderDialect() const { return !knows_char_; }

  // `arguments` with what this kernel lacks replaced by what is as good.
  std::string InItsDialect(std::string arguments) const;

  bool HasEvent(const std::string& group, const std::string& event) const;

 private:
  struct LogEntry {
    std::string stamp;
    std::string message;
    std::string command;
    int caret = 0;
  };

  explicit KernelUprobes(UniqueFd events) : events_(std::move(events)) {}
  static std::vector<LogEntry> ReadLog();

  UniqueFd events_;
  std::string last_stamp_;
  bool knows_char_ = true;
};

}  // namespace probed::lang::testing
