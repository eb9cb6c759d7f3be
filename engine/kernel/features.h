#pragma once
// What this kernel's tracing can do, as its own README in tracefs and its files say.

#include <string>
#include <string_view>
#include <vector>

#include "engine/kernel/definition_line.h"
#include "engine/kernel/tracefs.h"

namespace probed::kernel {

struct Features {
  bool kprobes = false;
  bool uprobes = false;
  bool fprobes = false;
  bool tracepoint_probes = false;
  bool eprobes = false;
  bool synthetic = false;
  bool btf_arguments = false;
  bool histograms = false;

  bool Has(LineKind kind) const;
};

// From the text of README and the files that are there.
Features ReadFeatures(const Tracefs& tracefs);

// NO_KPROBE_EVENTS and its like: what is missing, and what has it.
Error NotInThisKernel(LineKind kind);

}  // namespace probed::kernel
