#pragma once
// A file namespace made of tables.

#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "engine/lang/definition_set.h"

namespace probed::lang::testing {

class FakeFiles : public FileNamespace {
 public:
  void AddFile(const std::string& path, uint64_t inode) { inodes_[path] = inode; }
  void AddDirectory(const std::string& path) { inodes_[path] = 0; }
  void AddProcess(int pid) { processes_.insert(pid); }
  void AddSymbol(const std::string& name, uint64_t offset) { symbols_[name] = offset; }

  FileLookup Lookup(const std::string& path) override {
    std::string normal = std::filesystem::path(path).lexically_normal();
    if (normal.size() > 1 && normal.ends_with('/')) normal.pop_back();
    const auto found = inodes_.find(normal);
    if (found == inodes_.end()) return {ENOENT, false, 0, 0};
    return {0, found->second != 0, 1, found->second};
  }

  Result<uint64_t> ResolveSymbol(const std::string& path, const std::string& symbol,
                                 uint64_t addend) override {
    const auto found = symbols_.find(symbol);
    if (found != symbols_.end()) return found->second + addend;
    Error error;
    error.code = ErrorCode::kNotFound;
    error.reason = "SYMBOL_NOT_FOUND";
    error.message = path + " has no symbol " + symbol;
    error.hint = "look at its symbols";
    return error;
  }

  Result<void> LookupProcess(int pid) override {
    if (processes_.contains(pid)) return {};
    Error error;
    error.code = ErrorCode::kNotFound;
    error.reason = "PROCESS_NOT_ATTACHED";
    error.message = "not attached";
    error.hint = "attach";
    return error;
  }

 private:
  std::set<int> processes_;
  std::map<std::string, uint64_t> inodes_;  // 0 = directory
  std::map<std::string, uint64_t> symbols_;
};

}  // namespace probed::lang::testing
