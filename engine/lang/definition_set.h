#pragma once
// The definitions of one target (or of one `probectl check`): judges lines in order with the
// kernel's checks, messages and carets, and keeps what was accepted. Not thread-safe.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/lang/definition.h"

namespace probed::lang {

enum class Dialect : uint8_t {
  kKernel,  // exactly uprobe_events
  // Plus PATH:SYMBOL[+OFFSET], PID:0xADDRESS (of p), and paths without '/'; rN for maxactive; $argN
  // at entry and return; %xmm0-%xmm15 (a value of 64 bits); types f32, f64 and
  // bytes(LENGTH[:TYPE]), LENGTH being a fetcharg read as s64 unless TYPE says otherwise;
  // expressions of 255 bytes; constant strings.
  kExtended,
};

// How a definition's path is looked up; the order of checks asks for it in the middle of a line.
struct FileLookup {
  int error_number = 0;  // 0 = found
  bool regular = false;
  uint64_t device = 0;
  uint64_t inode = 0;
  std::string hint = {};  // why it was not found, where the usual words do not fit
};

class FileNamespace {
 public:
  virtual ~FileNamespace() = default;
  virtual FileLookup Lookup(const std::string& path) = 0;
  // Extended dialect: file offset of `symbol` + `addend`. Its Error is shown as it is.
  virtual Result<uint64_t> ResolveSymbol(const std::string& path, const std::string& symbol,
                                         uint64_t addend) = 0;
  // Extended dialect: whether `PID:0xADDRESS` may name it. Its Error is shown as it is.
  virtual Result<void> LookupProcess(int pid) {
    (void)pid;
    return {};
  }
  // Of the function at a file offset. Asked only where an argument is taken by its number.
  virtual CallingConvention ConventionAt(const std::string& path, uint64_t offset) {
    (void)path, (void)offset;
    return CallingConvention::kSystemV;
  }
};

// What a line came to. `caret` is a 0-based column in `command` (the tokens joined by single
// spaces, comment gone); message and caret are absent where the kernel logs nothing.
struct Verdict {
  bool ok = false;
  int error_number = 0;  // positive errno; 0 when ok
  std::string code;      // BAD_REG_NAME...; our own words for silent rejections
  std::optional<std::string> message;
  std::optional<int> caret;
  std::string command;
  std::string explanation;            // in our words: what is wrong and what to write instead
  std::vector<std::string> readback;  // the definitions this line added
};

using DefinitionId = uint64_t;  // unique in one set, never reused

class DefinitionSet {
 public:
  // Whether an event that is not of this set has the name, as sched/sched_switch does.
  using ForeignEvents = std::function<bool(const std::string& group, const std::string& event)>;

  explicit DefinitionSet(Dialect dialect, ForeignEvents foreign_events = {});
  ~DefinitionSet();
  DefinitionSet(DefinitionSet&&) noexcept;
  DefinitionSet& operator=(DefinitionSet&&) noexcept;

  struct Applied {
    Verdict verdict;
    std::optional<DefinitionId> added;
    std::vector<DefinitionId> removed;
  };

  // One line (no newline inside). Deletions (`-:`) work too.
  Applied Apply(std::string_view line, FileNamespace& files);
  // The same in a dialect of this line's own: names and places are shared by both.
  Applied Apply(std::string_view line, FileNamespace& files, Dialect dialect);

  // Shared with the set, and alive as long as anybody holds it; null for an unknown id.
  std::shared_ptr<const Definition> Find(DefinitionId id) const;
  std::vector<DefinitionId> ids() const;  // creation order
  bool Remove(DefinitionId id);           // for rollback and API deletion
  // Enabled events refuse deletion with EBUSY.
  void SetEventEnabled(const std::string& group, const std::string& event, bool enabled);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Splits what one write(2) would carry into lines as the kernel does: see kernel-facing notes in
// the source (4096-byte pieces, NUL bytes, missing last newline).
struct InputLine {
  std::string text;
  bool too_long = false;  // EINVAL without a log entry
};
std::vector<InputLine> SplitLines(std::string_view bytes);

enum class LineDestination : uint8_t { kUser, kKernel, kDeletion, kEmpty, kMalformed };
// Who a line is for: `p:x vfs_read`, `t:`/`f:`/`e:`/`s:` and `sched:sched_switch` go to the real
// tracefs. `name:symbol` without a '/' is a module's kprobe in the kernel dialect and a file's
// symbol in the extended one.
LineDestination Classify(std::string_view line, Dialect dialect = Dialect::kExtended);

}  // namespace probed::lang
