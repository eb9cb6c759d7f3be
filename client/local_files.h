#pragma once
// The caller's own file system as the definition language sees it. Thread-compatible.

#include <map>
#include <memory>
#include <string>

#include "elf/file.h"
#include "engine/lang/definition_set.h"

namespace probed::client {

// In the extended dialect a bare name that is not in the working directory is looked for in the
// usual directories, as a daemon does that finds nothing of the name mapped.
class LocalFiles : public lang::FileNamespace {
 public:
  explicit LocalFiles(lang::Dialect dialect = lang::Dialect::kKernel) : dialect_(dialect) {}

  lang::FileLookup Lookup(const std::string& path) override;
  Result<uint64_t> ResolveSymbol(const std::string& path, const std::string& symbol,
                                 uint64_t addend) override;

 private:
  std::string Find(const std::string& path) const;
  Result<std::shared_ptr<const elf::File>> Open(const std::string& path);

  lang::Dialect dialect_;
  std::map<std::string, std::shared_ptr<const elf::File>> open_;  // symbol tables are slow to load
};

}  // namespace probed::client
