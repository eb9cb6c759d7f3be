// Record payloads are written by targets: decoding them must trust nothing.

#include <string>

#include "engine/lang/definition_set.h"
#include "engine/lang/payload.h"
#include "engine/lang/print.h"

namespace {

class OneFile : public probed::lang::FileNamespace {
 public:
  probed::lang::FileLookup Lookup(const std::string&) override {
    return {.error_number = 0, .regular = true, .device = 1, .inode = 2};
  }
  probed::Result<uint64_t> ResolveSymbol(const std::string&, const std::string&,
                                         uint64_t addend) override {
    return addend;
  }
};

const probed::lang::EventSchema& Schema() {
  static const probed::lang::EventSchema schema = [] {
    OneFile files;
    probed::lang::DefinitionSet set(probed::lang::Dialect::kExtended);
    auto applied = set.Apply(
        "p:g/e /f:0x10 a=%di:u8 b=+0(%si):string c=+0(%si):string[3] d=+0(%si):s32[5] e=%xmm0:f64",
        files);
    return set.Find(*applied.added)->schema;
  }();
  return schema;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto values =
      probed::lang::DecodePayload(Schema(), {reinterpret_cast<const std::byte*>(data), size});
  if (values.ok()) {
    std::string text;
    probed::lang::AppendArguments(Schema(), values.value(), text);
  }
  return 0;
}
