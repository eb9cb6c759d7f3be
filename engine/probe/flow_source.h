#pragma once
// Everything that a file says about where its code is entered, for arch::FlowMap.

#include <memory>

#include "base/result.h"
#include "elf/file.h"
#include "engine/arch/x86_64/flow.h"

namespace probed::probe {

// Reads the file's segments whole and analyses them: tens of milliseconds per megabyte of code, so
// never on the tracer thread, and once per file. As FlowMap::Analyze.
Result<std::shared_ptr<const arch::FlowMap>> AnalyzeFlow(const elf::File& file);

}  // namespace probed::probe
