#include "daemon/services/symbols.h"

#include "daemon/access/file_access.h"
#include "daemon/convert/names.h"
#include "daemon/convert/page.h"
#include "daemon/convert/status.h"
#include "daemon/convert/symbol.h"
#include "daemon/convert/text.h"
#include "daemon/services/kernel.h"
#include "engine/lang/path_escape.h"
#include "engine/lang/place.h"

namespace probed::daemon {
namespace {

// Enough for every symbol of a large process; pages are cut from it.
constexpr size_t kMaxSymbols = 1'000'000;

std::string PathOf(const std::string& location) {
  const size_t end = lang::PathEnd(location, lang::Dialect::kExtended);
  return lang::UnescapePath(std::string_view(location).substr(0, end));
}

}  // namespace

Result<std::optional<event::TargetId>> SymbolService::Scope(const std::string& parent,
                                                            const std::string& path) {
  std::optional<event::TargetId> target;
  if (!parent.empty()) {
    PROBED_TRY(target, ParseTargetName(parent));
    PROBED_RETURN_IF_ERROR(context_.authorizer.CheckTarget(caller_, *target));
    PROBED_RETURN_IF_ERROR(FindTarget(context_, *target));
  } else if (path.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "NOTHING_TO_SEARCH",
                 "neither a target nor a path is given",
                 "a path, an attached target, or both (probectl symbols --path FILE, --pid PID)",
                 {}};
  }
  if (!path.empty()) PROBED_RETURN_IF_ERROR(CheckReadable(caller_, path, target));
  return target;
}

Result<std::optional<event::TargetId>> SymbolService::ScopeOf(const std::string& parent,
                                                              const std::string& location) {
  const int pid = lang::ProcessOf(location);
  if (pid == 0) return Scope(parent, PathOf(location));
  for (const engine::TargetInfo& target : context_.engine.ListTargets()) {
    const bool is_it = target.id.pid == pid && target.state == engine::TargetState::kRunning;
    if (is_it && context_.authorizer.MaySee(caller_, target.id)) return std::optional(target.id);
  }
  return Error{ErrorCode::kNotFound,
               "PROCESS_NOT_ATTACHED",
               "process " + std::to_string(pid) + " is not attached",
               "probectl attach --pid " + std::to_string(pid),
               {{"pid", std::to_string(pid)}}};
}

grpc::Status SymbolService::ListModules(grpc::ServerContext*, const v1::ListModulesRequest* request,
                                        v1::ListModulesResponse* response) {
  const std::string query = "modules of " + request->parent();
  const auto page = ParsePage(request->page_size(), request->page_token(), query);
  if (!page.ok()) return ToStatus(page.error());
  const auto target = Scope(request->parent(), "");
  if (!target.ok()) return ToStatus(target.error());
  auto modules = context_.engine.ListModules(**target);
  if (!modules.ok()) return ToStatus(modules.error());
  auto taken = TakePage(*std::move(modules), *page, query, [](const engine::ModuleInfo& module) {
    return PageKey{module.start, module.end, 0};
  });
  for (const engine::ModuleInfo& module : taken.items)
    *response->add_modules() = ToProto(module);
  response->set_next_page_token(std::move(taken.next_token));
  return grpc::Status::OK;
}

grpc::Status SymbolService::SearchSymbols(grpc::ServerContext*,
                                          const v1::SearchSymbolsRequest* request,
                                          v1::SearchSymbolsResponse* response) {
  if (request->parent() == kKernelName) return SearchKernelSymbols(caller_, *request, *response);
  const std::string query = request->parent() + '\n' + request->path() + '\n' + request->pattern();
  const auto page = ParsePage(request->page_size(), request->page_token(), query);
  if (!page.ok()) return ToStatus(page.error());
  const auto target = Scope(request->parent(), request->path());
  if (!target.ok()) return ToStatus(target.error());
  // The engine's order is the same each time, so a symbol's key is its place.
  const size_t first = page->after ? (*page->after)[0] : 0;
  const size_t limit = std::min(first + page->size + 1, kMaxSymbols);
  const auto symbols = context_.engine.SearchSymbols(
      {*target, request->path(), request->pattern().empty() ? "*" : request->pattern(), limit});
  if (!symbols.ok()) return ToStatus(symbols.error());
  const size_t end = std::min(first + page->size, symbols->size());
  for (size_t i = first; i < end; ++i)
    *response->add_symbols() = ToProto((*symbols)[i]);
  if (end < symbols->size()) response->set_next_page_token(PageToken({end, 0, 0}, query));
  return grpc::Status::OK;
}

Result<engine::Explanation> SymbolService::Explain(const std::string& parent,
                                                   const std::string& location) {
  PROBED_TRY(const std::optional<event::TargetId> target, ScopeOf(parent, location));
  return context_.engine.Explain(target, location);
}

// Run-time address of a file offset: that of the function around it plus the distance.
uint64_t SymbolService::AddressOf(event::TargetId target, const engine::Explanation& explanation) {
  const std::string function = explanation.symbol.substr(0, explanation.symbol.rfind('+'));
  const auto symbols = context_.engine.SearchSymbols({target, explanation.path, function, 16});
  if (!symbols.ok()) return 0;
  for (const engine::SymbolInfo& symbol : *symbols)
    if (symbol.address != 0 &&
        explanation.offset - symbol.offset < std::max<uint64_t>(symbol.size, 1))
      return symbol.address + (explanation.offset - symbol.offset);
  return 0;
}

grpc::Status SymbolService::ResolveSymbol(grpc::ServerContext*,
                                          const v1::ResolveSymbolRequest* request,
                                          v1::ResolveSymbolResponse* response) {
  const auto explanation = Explain(request->parent(), request->location());
  if (!explanation.ok()) return ToStatus(explanation.error());
  v1::Symbol* symbol = response->mutable_symbol();
  symbol->set_name(Utf8(explanation->symbol));
  symbol->set_module(Utf8(explanation->path));
  symbol->set_offset(explanation->offset);
  symbol->set_size(explanation->function_size);
  if (auto target = ParseTargetName(request->parent()); target.ok())
    symbol->set_address(AddressOf(*target, *explanation));
  return grpc::Status::OK;
}

// The code allows a jump; whether there would be one is the operator's choice.
void SymbolService::AddJump(engine::Explanation& explanation) {
  if (explanation.mechanism != engine::Mechanism::kBoosted) return;
  if (context_.engine.optimization()) {
    explanation.mechanism = engine::Mechanism::kOptimized;
    explanation.reason =
        "a jump leads to code that records the hit in the program itself; until "
        "it is written, " +
        explanation.reason;
  } else {
    explanation.reason = "optimization is off; " + explanation.reason;
  }
}

grpc::Status SymbolService::ExplainLocation(grpc::ServerContext*,
                                            const v1::ExplainLocationRequest* request,
                                            v1::ExplainLocationResponse* response) {
  if (request->parent() == kKernelName)
    return ExplainKernelLocation(caller_, request->location(), *response);
  const auto target = ScopeOf(request->parent(), request->location());
  if (!target.ok()) return ToStatus(target.error());
  auto explanation = context_.engine.Explain(*target, request->location());
  if (!explanation.ok()) return ToStatus(explanation.error());
  if (lang::ProcessOf(request->location()) != 0) {
    *response = ToProto(*explanation, {});
    return grpc::Status::OK;
  }
  auto jump = context_.engine.ExplainJump(*target, explanation->path, explanation->offset);
  if (!jump.ok()) jump = engine::JumpExplanation{"", {}, jump.error().message};
  if (!jump->tactic.empty() && explanation->on_boundary) AddJump(*explanation);
  *response = ToProto(*explanation, *jump);
  return grpc::Status::OK;
}

grpc::Status SymbolService::ExplainFile(grpc::ServerContext*, const v1::ExplainFileRequest* request,
                                        v1::ExplainFileResponse* response) {
  const auto target = Scope(request->parent(), request->path());
  if (!target.ok()) return ToStatus(target.error());
  const auto explanation = context_.engine.ExplainFile(*target, request->path());
  if (!explanation.ok()) return ToStatus(explanation.error());
  *response = ToProto(*explanation);
  return grpc::Status::OK;
}

}  // namespace probed::daemon
