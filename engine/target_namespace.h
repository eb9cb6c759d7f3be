#pragma once
// How definition lines see files and symbols: in the target's own file system and mappings. Lives
// for one request; any thread.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/lang/definition_set.h"
#include "engine/probe/address_space.h"
#include "engine/probe/file_cache.h"

namespace probed::engine {

class TargetNamespace final : public lang::FileNamespace {
 public:
  // `family`: the target's process and the children of it that are followed.
  TargetNamespace(int pid, const probe::AddressSpace& space, probe::FileCache& files,
                  std::vector<int> family = {})
      : pid_(pid), space_(space), files_(files), family_(std::move(family)) {}

  lang::FileLookup Lookup(const std::string& path) override;
  Result<uint64_t> ResolveSymbol(const std::string& path, const std::string& symbol,
                                 uint64_t addend) override;

  Result<void> LookupProcess(int pid) override;
  lang::CallingConvention ConventionAt(const std::string& path, uint64_t offset) override;

  // What it has mapped is of another program, which it is about to leave.
  void set_before_exec() { before_exec_ = true; }
  // The process has ended: every path fails to be found in it.
  bool Gone() const;
  Result<std::shared_ptr<const elf::File>> Open(const std::string& path);
  Result<elf::Symbol> FindFunction(const std::string& path, const std::string& symbol);
  // What is to be said about how the last symbol was found; empty: nothing. Forgets it.
  std::string TakeRemark() { return std::exchange(remark_, {}); }
  // The error of the last symbol lookup, with its hint and metadata, and forgets it.
  std::optional<Error> TakeSymbolError();

 private:
  // Looked up once for the whole request, which may name one file in thousands of lines.
  const Result<probe::FileReference>& Resolve(const std::string& path);
  // The implementation instead of the resolver; SYMBOL_IS_IFUNC when the process has not chosen.
  Result<elf::Symbol> FollowIfunc(const std::string& path, const elf::File& file,
                                  elf::Symbol symbol);
  std::string HintFor(const std::string& path) const;
  std::string WhoDefines(const std::string& symbol, const std::string& except);

  int pid_;
  const probe::AddressSpace& space_;
  probe::FileCache& files_;
  const std::vector<int> family_;
  std::map<std::string, Result<probe::FileReference>> resolved_;
  std::map<std::string, Result<std::shared_ptr<const elf::File>>> opened_;
  std::optional<Error> symbol_error_;
  std::string remark_;
  bool before_exec_ = false;
};

}  // namespace probed::engine
