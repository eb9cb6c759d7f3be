#include "daemon/convert/symbol.h"

#include "daemon/convert/probe.h"
#include "daemon/convert/text.h"

namespace probed::daemon {

v1::Module ToProto(const engine::ModuleInfo& module) {
  v1::Module out;
  out.set_path(Utf8(module.path));
  out.set_build_id(module.build_id);
  out.set_load_bias(module.load_bias);
  out.set_start(module.start);
  out.set_end(module.end);
  out.set_deleted(module.deleted);
  return out;
}

v1::Symbol ToProto(const engine::SymbolInfo& symbol) {
  v1::Symbol out;
  out.set_name(Utf8(symbol.name));
  out.set_demangled(Utf8(symbol.demangled));
  out.set_version(Utf8(symbol.version));
  out.set_module(Utf8(symbol.module));
  out.set_offset(symbol.offset);
  out.set_address(symbol.address);
  out.set_size(symbol.size);
  out.set_ifunc(symbol.ifunc);
  for (const std::string& alias : symbol.aliases)
    out.add_aliases(Utf8(alias));
  return out;
}

v1::ExplainLocationResponse ToProto(const engine::Explanation& explanation,
                                    const engine::JumpExplanation& jump) {
  v1::ExplainLocationResponse out;
  out.set_path(Utf8(explanation.path));
  out.set_offset(explanation.offset);
  out.set_symbol(Utf8(explanation.symbol));
  out.set_function_size(explanation.function_size);
  out.set_instruction(Utf8(explanation.instruction));
  out.set_bytes(explanation.bytes);
  out.set_on_boundary(explanation.on_boundary);
  out.set_mechanism(ToProto(explanation.mechanism));
  out.set_reason(Utf8(explanation.reason));
  out.set_tactic(jump.tactic);
  for (const std::string& instruction : jump.region)
    out.add_region(Utf8(instruction));
  out.set_no_jump(Utf8(jump.no_jump));
  out.set_return_probe(Utf8(explanation.return_probe));
  out.set_at_ret(Utf8(explanation.at_ret));
  return out;
}

v1::ExplainFileResponse ToProto(const engine::FileExplanation& explanation) {
  v1::ExplainFileResponse out;
  out.set_path(Utf8(explanation.path));
  for (const engine::PlanShareInfo& share : explanation.shares) {
    v1::PlanShare* added = out.add_shares();
    added->set_mechanism(ToProto(share.mechanism));
    added->set_tactic(share.tactic);
    added->set_rule(share.rule);
    added->set_functions(share.functions);
    added->set_instructions(share.instructions);
  }
  return out;
}

}  // namespace probed::daemon
