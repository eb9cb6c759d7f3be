#pragma once
// Modules, symbols and explanations to the API. Pure.

#include "engine/engine.h"
#include "probed/v1/symbols.pb.h"

namespace probed::daemon {

v1::Module ToProto(const engine::ModuleInfo& module);
v1::Symbol ToProto(const engine::SymbolInfo& symbol);
v1::ExplainLocationResponse ToProto(const engine::Explanation& explanation,
                                    const engine::JumpExplanation& jump);
v1::ExplainFileResponse ToProto(const engine::FileExplanation& explanation);

}  // namespace probed::daemon
