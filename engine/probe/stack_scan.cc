#include "engine/probe/stack_scan.h"

#include <algorithm>
#include <utility>

#include "elf/module_map.h"
#include "engine/sys/proc.h"
#include "engine/tracee/process.h"

namespace probed::probe {
namespace {

constexpr size_t kLargestStack = 64u << 20;
constexpr size_t kReadOfAHeap = 1u << 20;  // where stacks are parts of it (Go)
constexpr size_t kChunkWords = 8192;
constexpr size_t kMaxStacks = 16;  // of one thread, each interrupted on the one before

// struct rt_sigframe (arch/x86/include/asm/sigframe.h), in words.
constexpr size_t kContextFlags = 1, kContextLink = 2, kInterruptedSp = 21, kSegments = 24;
constexpr size_t kFrameWords = kSegments + 1;
constexpr uint64_t kAllContextFlags = 7;  // UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS
constexpr uint16_t kUserCodeSegment = 0x33;

// It may be something else that looks like one.
bool IsSignalFrame(std::span<const uint64_t> words) {
  return words.size() >= kFrameWords && words[kContextFlags] <= kAllContextFlags &&
         words[kContextLink] == 0 && static_cast<uint16_t>(words[kSegments]) == kUserCodeSegment;
}

class Scan {
 public:
  Scan(const elf::ModuleMap& map, std::span<const uint64_t> wanted,
       std::unordered_set<uint64_t>& found)
      : map_(map), wanted_(wanted), found_(found) {}

  void Run(const tracee::Process& process, RemoteAddr stack_pointer) {
    waiting_.push_back(stack_pointer);
    while (!waiting_.empty() && read_.size() < kMaxStacks) {
      RemoteAddr next{waiting_.back().value & ~uint64_t{7}};
      waiting_.pop_back();
      Read(process, next);
    }
  }

 private:
  struct Range {
    RemoteAddr start, end;
  };

  void Read(const tracee::Process& process, RemoteAddr start) {
    const elf::Mapping* mapping = map_.At(start);
    bool known = std::any_of(read_.begin(), read_.end(), [&](const Range& range) {
      return start >= range.start && start < range.end;
    });
    if (mapping == nullptr || known) return;
    bool is_stack = mapping->end - mapping->start <= kLargestStack;
    RemoteAddr end = is_stack ? mapping->end : std::min(mapping->end, start + kReadOfAHeap);
    read_.push_back({start, end});
    // Chunks overlap, so that every frame is seen as a whole.
    for (RemoteAddr at = start; at < end; at = at + kChunkWords * sizeof(uint64_t)) {
      size_t size = std::min<uint64_t>((kChunkWords + kFrameWords) * sizeof(uint64_t), end - at);
      words_.resize(size / sizeof(uint64_t));
      auto bytes = std::as_writable_bytes(std::span(words_));
      words_.resize(process.memory().ReadSome(at, bytes) / sizeof(uint64_t));
      Look();
    }
  }

  void Look() {
    for (size_t i = 0; i < words_.size(); ++i) {
      auto rest = std::span(words_).subspan(i);
      if (IsWanted(rest[0])) found_.insert(rest[0]);
      if (IsSignalFrame(rest)) waiting_.push_back(RemoteAddr{rest[kInterruptedSp]});
    }
  }

  bool IsWanted(uint64_t word) const {
    return word >= wanted_.front() && word <= wanted_.back() &&
           std::binary_search(wanted_.begin(), wanted_.end(), word);
  }

  const elf::ModuleMap& map_;
  const std::span<const uint64_t> wanted_;
  std::unordered_set<uint64_t>& found_;
  std::vector<RemoteAddr> waiting_;
  std::vector<Range> read_;
  std::vector<uint64_t> words_;
};

}  // namespace

Result<std::unordered_set<uint64_t>> FindOnStacks(const std::vector<tracee::Stopped*>& threads,
                                                  std::span<const uint64_t> wanted) {
  std::unordered_set<uint64_t> found;
  if (wanted.empty()) return found;
  const tracee::Process& process = threads.front()->process();
  PROBED_TRY(std::string text, sys::ReadMaps(process.pid()));
  PROBED_TRY(std::vector<elf::Mapping> mappings, elf::ParseMaps(text));
  const elf::ModuleMap map(std::move(mappings));
  for (tracee::Stopped* thread : threads)
    Scan(map, wanted, found).Run(process, RemoteAddr{thread->regs().rsp});
  return found;
}

}  // namespace probed::probe
