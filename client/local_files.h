#pragma once
// The caller's own file system as the definition language sees it. Thread-compatible.

#include <map>
#include <memory>
#include <string>

#include "elf/file.h"
#include "engine/lang/definition_set.h"

namespace probed::client {

class LocalFiles : public lang::FileNamespace {
 public:
  lang::FileLookup Lookup(const std::string& path) override;
  Result<uint64_t> ResolveSymbol(const std::string& path, const std::string& symbol,
                                 uint64_t addend) override;

 private:
  Result<std::shared_ptr<const elf::File>> Open(const std::string& path);

  std::map<std::string, std::shared_ptr<const elf::File>> open_;  // symbol tables are slow to load
};

}  // namespace probed::client
