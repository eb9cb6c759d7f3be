#include "engine/probe/stack_scan.h"

#include <algorithm>
#include <array>

#include "engine/tracee/process.h"

namespace probed::probe {

void FindOnStack(tracee::Stopped& stopped, std::span<const uint64_t> wanted,
                 std::unordered_set<uint64_t>& found) {
  if (wanted.empty()) return;
  std::array<uint64_t, 4096> words{};
  RemoteAddr at{stopped.regs().rsp & ~uint64_t{7}};
  for (size_t scanned = 0; scanned < kMaxScannedStack; scanned += sizeof words) {
    auto bytes = std::as_writable_bytes(std::span(words));
    size_t count = stopped.process().memory().ReadSome(at + scanned, bytes);
    for (uint64_t word : std::span(words).first(count / sizeof(uint64_t))) {
      if (word < wanted.front() || word > wanted.back()) continue;
      if (std::binary_search(wanted.begin(), wanted.end(), word)) found.insert(word);
    }
    if (count < bytes.size()) return;
  }
}

}  // namespace probed::probe
