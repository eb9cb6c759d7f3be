#pragma once
// Everything probectl says about its work, on standard error, and the live status line. Data never
// goes here. Thread-safe.

#include <mutex>
#include <string>
#include <string_view>

#include "base/error.h"
#include "client/exit_code.h"
#include "client/remote_error.h"

namespace probed::client {

enum class Color : uint8_t { kAuto, kAlways, kNever };

class Talk {
 public:
  // kAuto: on a terminal unless NO_COLOR is set (no-color.org).
  Talk(Color color, bool quiet);

  // "probectl: text"; nothing under --quiet.
  void Note(std::string_view text);
  // "probectl: warning: text", also under --quiet: data is missing or something was left undone.
  void Warn(std::string_view text);
  // What, why and what to try; refused definitions as the kernel's error_log shows them. Returns
  // the exit code of the error's family.
  ExitCode Fail(const Error& error);
  ExitCode Fail(const RemoteError& error);

  // One line at the bottom of a terminal, redrawn in place; ignored elsewhere and under --quiet.
  void SetStatus(std::string_view text);
  void ClearStatus();

 private:
  void Write(std::string text);
  std::string Shown(std::string_view text) const;
  std::string Paint(std::string_view code, std::string_view text) const;

  std::mutex mutex_;
  bool color_;
  bool quiet_;
  bool is_terminal_;
  bool status_shown_ = false;
};

// The parts of Fail, for tests.
std::string DescribeError(const Error& error);
std::string DescribeVerdict(const v1::LineVerdict& verdict);

}  // namespace probed::client
