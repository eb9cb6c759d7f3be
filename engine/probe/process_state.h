#pragma once
// What the probe layer keeps about a traced process and each of its threads. Tracer thread only.

#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/address.h"
#include "engine/event/drainer.h"
#include "engine/probe/patch_journal.h"
#include "engine/probe/probe.h"
#include "engine/probe/rescue.h"
#include "engine/probe/return_stack.h"
#include "engine/probe/signal_action.h"
#include "engine/probe/site_table.h"
#include "engine/probe/target_ring.h"
#include "engine/probe/unwound.h"
#include "engine/tracee/process.h"
#include "engine/tracee/thread.h"

namespace probed::probe {

class ProcessState;

// The probes of one root target, shared by the children that are followed.
struct ProbeGroup {
  event::TargetId root;
  bool follow_children = false;
  std::vector<std::shared_ptr<Probe>> probes;  // creation order
  std::vector<ProcessState*> processes;

  // After an exec. A probe that was never hit in the program that has ended might as well not have
  // been armed there: of `probectl run` that is probectl itself, with libraries of its own.
  void AwaitFilesAnew();
};

// Where a thread was when a signal took it out of a copy: the next hit there with the same stack is
// the same execution and is not counted again.
struct Interrupted {
  RemoteAddr site;
  uint64_t sp = 0;
};

class ThreadState final : public tracee::Extension {
 public:
  static ThreadState& Of(tracee::Thread& thread);

  ReturnStack returns;
  std::optional<LastStack> last_stack;  // the thread is just ending
  // The site whose copy, or displaced instructions, are being single-stepped.
  std::optional<RemoteAddr> stepping;
  std::optional<Interrupted> interrupted;
  std::vector<siginfo_t> held_signals;        // wait for the steps under way to end
  std::optional<uint64_t> mask_before_steps;  // while signals are kept away from those steps
  std::optional<uint64_t> signal_mask;        // the program's, as last seen: trap_signal.h
  uint64_t trap_looked_at_since_ns = 0;       // MayBeAwaited(); 0: not looked at
  bool trap_is_sent_again = false;            // one of the program's own: YieldToProgram()
};

// One that was sent to the process, for somebody who might come to wait for it: trap_signal.h.
struct KeptTrap {
  pid_t tid = 0;  // that had got it, and blocks it since
  siginfo_t info;
  uint64_t since_ns = 0;
};

// Inodes, and where code of theirs is mapped: a library may be mapped twice (dlmopen(3)), or again.
using SeenCode = std::set<std::pair<uint64_t, RemoteAddr>>;

class ProcessState final : public tracee::Extension {
 public:
  ProcessState(tracee::Process& process, std::shared_ptr<ProbeGroup> probe_group,
               std::shared_ptr<PatchJournal> patches);
  ~ProcessState() override;
  // Null for a process that is not ours yet.
  static ProcessState* Of(tracee::Process& process);

  tracee::Process& process;
  const event::TargetId id;
  const std::shared_ptr<ProbeGroup> group;
  ProcessJournal journal;  // what somebody else must undo if we die
  Rescue rescue;           // and what keeps the process alive until then
  SiteTable sites;
  // Where a hijacked function returns to: one int3 in the arena. 0 until the first return probe.
  RemoteAddr trampoline;
  // What detours share (routines.h). 0 until the first of them.
  RemoteAddr routines;
  // Between an exec and the program's first own instruction: system calls are watched for mappings.
  bool loading = false;
  // The program that it executes, traced since when: what was planned for one is nothing to the
  // next, nor to the same process when it is attached to once more. No two have the same number.
  uint64_t image = NextImage();
  static uint64_t NextImage();
  // It is being detached from: nothing may be armed any more, in new images and children neither.
  bool leaving = false;
  // Its own calls of mmap(2) and the like are looked at (map_calls.h): for as long as a file is
  // waited for, and once code came that way.
  bool watches_maps = false;
  bool maps_code_itself = false;
  // A daemon died that traced it. Our memory stays mapped: while nobody traced it, the program may
  // have gone off into a signal handler from there.
  bool salvaged = false;
  uint64_t rescue_next_ns = 0;  // when the handler may be put in place again
  // What the program does on SIGTRAP; nothing: the default. See trap_signal.h.
  std::optional<SignalAction> trap_action;
  bool dumps_core = false;  // its threads are being shown with their own returns: fatal_signal.h
  std::optional<KeptTrap> kept_trap;
  bool nobody_awaits_traps = false;  // has turned out of one that might have been
  bool has_unseen_blocks = false;    // some thread has come to block it: RestoreUnseenBlock()
  std::optional<bool> runs_go;       // nothing: not looked at
  // The same for SIGSEGV and SIGBUS: fault_signal.h.
  std::optional<SignalAction> segv_action, bus_action;
  // A call has returned, or may return, in another thread than it was made in.
  bool stacks_migrate = false;
  // It runs on other stacks than its threads' own, which may lie anywhere.
  bool switches_contexts = false;
  std::string executable;
  // Code that was searched for unwinders, and for calls that map.
  SeenCode unwinders_seen, map_calls_seen;

  // It has, or had, sites in code that is in no file (generated_code.h).
  bool has_generated_sites = false;
  // Told of each site whose code is not what it was.
  std::function<void(const Site&)> on_site_gone;
  // Told of calls that were left without a return.
  std::function<void(const event::UnwoundNotice&)> on_unwound;

  // Null until the first site is optimized.
  std::shared_ptr<TargetRing> ring;
  event::SourceId source = event::kNoSource;

  // The site is none any more, or a breakpoint. No thread is in its detour, but what it has
  // recorded is still to be counted.
  void Retire(std::shared_ptr<const Optimization> optimization);
  // What stood there is gone, as by munmap(2), and nobody can be in it: the site goes, and what it
  // took up.
  void Forget(Site& site);
  // Of sites that were forgotten: what they have hijacked may still return, of a function that has
  // gone on in another (a tail call).
  bool HasOrphans() const { return !orphans_.empty(); }
  // Those of which nobody waits for a return any more are retired. All threads are stopped; at
  // `ips`.
  void RetireOrphans(std::span<const RemoteAddr> ips);
  // Gives back what those took up; CountDetours() has counted them.
  void ReleaseRetired();
  bool HasRetired() const { return !retired_.empty(); }
  // What a detour took up that was never used.
  void Release(const Optimization& optimization);
  // Of the daemon's own, or one that is a breakpoint now.
  bool IsTrampoline(RemoteAddr address) const {
    return address.value != 0 && (address == trampoline || sites.IsRetired(address));
  }
  // Until the program's entry point every system call is watched for new mappings
  // (module_watcher.h).
  tracee::Resumption::How HowToGoOn() const {
    return loading ? tracee::Resumption::How::kSyscall : tracee::Resumption::How::kContinue;
  }
  // Adds to the counters of probes and sites what detours have counted since.
  void CountDetours();
  // Nobody will tell how the returns that detours wait for end.
  void MissReturns();

  // The memory is gone (exec): forget sites, trampoline and what threads waited for. The ring is
  // the caller's to end before.
  void ForgetMemory();

 private:
  std::vector<std::shared_ptr<const Optimization>> retired_;
  std::vector<std::shared_ptr<const Optimization>> orphans_;
};

}  // namespace probed::probe
