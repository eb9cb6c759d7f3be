// Definition lines in both dialects: no crash, and an accepted line's read-back is accepted again,
// unless its name was generated: the kernel does not check those, but it checks what is fed back.

#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/lang/definition_set.h"

namespace {

using probed::lang::DefinitionSet;
using probed::lang::Dialect;

class EveryFile : public probed::lang::FileNamespace {
 public:
  probed::lang::FileLookup Lookup(const std::string&) override {
    return {.error_number = 0, .regular = true, .device = 1, .inode = 2};
  }
  probed::Result<uint64_t> ResolveSymbol(const std::string&, const std::string&,
                                         uint64_t addend) override {
    return 0x1000 + addend;
  }
};

void Judge(Dialect dialect, std::string_view bytes) {
  EveryFile files;
  DefinitionSet set(dialect);
  for (const auto& line : probed::lang::SplitLines(bytes)) {
    auto applied = set.Apply(line.text, files);
    if (!applied.verdict.ok || dialect != Dialect::kKernel) continue;
    for (const std::string& readback : applied.verdict.readback) {
      DefinitionSet fresh(dialect);
      auto again = fresh.Apply(readback, files).verdict;
      if (!again.ok && again.code != "BAD_EVENT_NAME" && again.code != "EVENT_TOO_LONG")
        std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Judge(Dialect::kKernel, bytes);
  Judge(Dialect::kExtended, bytes);
  return 0;
}
