#pragma once
// A scratch directory of files with awkward names, and the file system itself as a namespace.

#include <string>
#include <vector>

#include "engine/lang/definition_set.h"

namespace probed::lang::testing {

class RealNamespace : public FileNamespace {
 public:
  FileLookup Lookup(const std::string& path) override;
  Result<uint64_t> ResolveSymbol(const std::string& path, const std::string& symbol,
                                 uint64_t addend) override;
};

class ScratchFiles {
 public:
  // Every name starts with `tag`, so that generated event names are this run's own.
  explicit ScratchFiles(const std::string& tag);
  ~ScratchFiles();
  ScratchFiles(const ScratchFiles&) = delete;
  ScratchFiles& operator=(const ScratchFiles&) = delete;

  const std::vector<std::string>& paths() const { return paths_; }

 private:
  std::string directory_;
  std::vector<std::string> paths_;  // spellings to try, good and bad
};

}  // namespace probed::lang::testing
