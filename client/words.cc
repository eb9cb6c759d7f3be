#include "client/words.h"

namespace probed::client {

std::string_view Word(v1::Mechanism mechanism) {
  switch (mechanism) {
    case v1::MECHANISM_UNOPTIMIZED:
      return "unoptimized";
    case v1::MECHANISM_BOOSTED:
      return "boosted";
    case v1::MECHANISM_OPTIMIZED:
      return "optimized";
    case v1::MECHANISM_KERNEL:
      return "kernel";
    default:
      return "none";
  }
}

std::string_view Meaning(v1::Mechanism mechanism) {
  switch (mechanism) {
    case v1::MECHANISM_UNOPTIMIZED:
      return "a breakpoint with a second trap: tens of microseconds a hit";
    case v1::MECHANISM_BOOSTED:
      return "a breakpoint: one trap, some ten microseconds a hit";
    case v1::MECHANISM_OPTIMIZED:
      return "a jump: no trap, tens of nanoseconds a hit";
    case v1::MECHANISM_KERNEL:
      return "a probe of the kernel's";
    default:
      return "no probe can stand there";
  }
}

std::string_view Word(v1::Probe::State state) {
  switch (state) {
    case v1::Probe::STATE_PENDING:
      return "pending";
    case v1::Probe::STATE_ARMED:
      return "armed";
    case v1::Probe::STATE_DISABLED:
      return "disabled";
    case v1::Probe::STATE_GONE:
      return "gone";
    default:
      return "unknown";
  }
}

std::string_view Word(v1::Target::State state) {
  switch (state) {
    case v1::Target::STATE_RUNNING:
      return "running";
    case v1::Target::STATE_EXITED:
      return "exited";
    case v1::Target::STATE_DETACHED:
      return "detached";
    default:
      return "unknown";
  }
}

std::string_view Word(v1::ProbeKind kind) {
  if (kind == v1::PROBE_KIND_TRACEPOINT) return "tracepoint";
  return kind == v1::PROBE_KIND_RETURN ? "return" : "entry";
}

std::string_view Word(v1::Dialect dialect) {
  return dialect == v1::DIALECT_KERNEL ? "kernel" : "extended";
}

}  // namespace probed::client
