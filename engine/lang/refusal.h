#pragma once
// Why a line is refused: the kernel's code, its message, and where the caret goes. Pure.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace probed::lang {

enum class RefusalCode : uint8_t {
  // Logged by the kernel, in the order of its table as far as a uprobe line can reach it.
  kFileNotFound,
  kNoRegularFile,
  kRefcntOpenBrace,
  kBadRefcntSuffix,
  kBadRefcnt,
  kBadAddrSuffix,
  kBadUprobeOffs,
  kBadMaxactType,
  kBadMaxact,
  kMaxactTooBig,
  kNoGroupName,
  kGroupTooLong,
  kBadGroupName,
  kNoEventName,
  kEventTooLong,
  kBadEventName,
  kEventExist,
  kTooManyArgs,
  kArgNameTooLong,
  kNoArgName,
  kBadArgName,
  kUsedArgName,
  kArgTooLong,
  kNoArgBody,
  kArrayNoClose,
  kBadArraySuffix,
  kBadArrayNum,
  kArrayTooBig,
  kNeedStringType,
  kBadType,
  kRetvalOnProbe,
  kBadArgNum,
  kNofentryArgs,
  kBadVar,
  kBadRegName,
  kBadMemAddr,
  kBadFileOffs,
  kSymOnUprobe,
  kDerefNeedBrace,
  kBadDerefOffs,
  kDerefOpenBrace,
  kCommCantDeref,
  kTooManyOps,
  kBadImm,
  kImmstrNoClose,
  kBadFetchArg,
  kNosupBtfarg,
  kEventTooBig,
  kBadString,
  kBadBitfield,
  kDiffProbeType,
  kDiffArgType,
  kSameProbe,
  // Refused without an entry in error_log; the words are ours.
  kBadLine,
  kUnknownKind,
  kMissingPlace,
  kPlaceWithoutPath,
  kPlaceWithoutOffset,
  kRefctrConflict,
  kBadDeletion,
  kNoSuchEvent,
  kEventBusy,
  // Extended dialect: an Error of a look-up, shown as it is.
  kOwnWords,
};

struct RefusalText {
  std::string_view name;         // BAD_REG_NAME
  std::string_view message;      // as logged; empty for silent refusals
  std::string_view explanation;  // ours
};
const RefusalText& TextOf(RefusalCode code);

struct Refusal {
  RefusalCode code;
  int error_number;
  size_t token = 0;  // index of the blamed token; one past the last is allowed
  int column = 0;    // caret inside it, with the kernel's skews: may lie outside
  // Set for kOwnWords; kFileNotFound may have a hint that fits better than its explanation.
  std::string reason, message, hint;
};

// A value or a Refusal.
template <class T>
class [[nodiscard]] Judged : public tl::expected<T, Refusal> {
 public:
  using tl::expected<T, Refusal>::expected;
  Judged(Refusal refusal) : tl::expected<T, Refusal>(tl::unexpect, std::move(refusal)) {}

  bool ok() const { return this->has_value(); }
};

}  // namespace probed::lang
