#include "engine/kernel/threads.h"

#include <algorithm>
#include <string_view>

#include "base/file.h"
#include "engine/sys/proc.h"

namespace probed::kernel {
namespace {

// What a thread may be known by wrongly after prctl(PR_SET_NAME), exec, or the reuse of its tid.
constexpr uint64_t kFreshNs = 50'000'000;
constexpr size_t kMaxKnown = 65536;

void SetComm(std::string_view comm, ThreadOwner& owner) {
  owner.comm = {};
  std::copy_n(comm.data(), std::min(comm.size(), owner.comm.size() - 1), owner.comm.data());
}

}  // namespace

const ThreadOwner& Threads::Of(int32_t tid, uint64_t now_ns) {
  if (known_.size() >= kMaxKnown) known_.clear();
  const auto [it, is_new] = known_.try_emplace(tid);
  Known& known = it->second;
  if (is_new || now_ns - known.asked_ns > kFreshNs) {
    Ask(tid, known.owner);
    known.asked_ns = now_ns;
  }
  return known.owner;
}

// What was known of a thread that has gone since stays.
void Threads::Ask(int32_t tid, ThreadOwner& owner) const {
  if (tid == 0) return SetComm("<idle>", owner);
  if (const auto status = sys::ReadTaskStatus(tid); status.ok()) {
    owner.pid = status->tgid;
    const std::string comm = sys::ReadComm(tid);
    SetComm(comm.empty() ? status->name : comm, owner);  // it may be gone by now
  } else if (owner.comm.front() == '\0') {
    SetComm(SavedComm(tid), owner);
  }
}

// Lines "TID COMM", where COMM may be of an earlier owner of the tid; "<...>" is what ftrace itself
// shows for those it has forgotten.
std::string Threads::SavedComm(int32_t tid) const {
  const auto text = ReadFile(tracefs_ + "/saved_cmdlines");
  const std::string key = "\n" + std::to_string(tid) + " ";
  const std::string lines = text.ok() ? "\n" + *text : "";
  const size_t at = lines.find(key);
  if (at == lines.npos) return "<...>";
  const size_t begin = at + key.size();
  return lines.substr(begin, lines.find('\n', begin) - begin);
}

}  // namespace probed::kernel
