#include "daemon/convert/page.h"

#include <charconv>

#include <fmt/format.h>

namespace probed::daemon {
namespace {

// FNV-1a: it must only be the same in the next request, on any build.
uint64_t Fingerprint(std::string_view query) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char byte : query)
    hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

std::optional<uint64_t> ParseWord(std::string_view token, size_t index) {
  uint64_t word = 0;
  const char* begin = token.data() + index * 16;
  auto [end, error] = std::from_chars(begin, begin + 16, word, 16);
  if (error != std::errc() || end != begin + 16) return std::nullopt;
  return word;
}

std::optional<PageKey> ParseToken(std::string_view token, std::string_view query) {
  if (token.size() != 4 * 16 || ParseWord(token, 0) != Fingerprint(query)) return std::nullopt;
  PageKey key;
  for (size_t i = 0; i < key.size(); ++i) {
    auto word = ParseWord(token, i + 1);
    if (!word) return std::nullopt;
    key[i] = *word;
  }
  return key;
}

}  // namespace

Result<PageRequest> ParsePage(int32_t page_size, std::string_view token, std::string_view query) {
  if (page_size < 0)
    return Error{ErrorCode::kInvalidArgument,
                 "INVALID_PAGE_SIZE",
                 "page_size is negative",
                 fmt::format("0 for {}, at most {}", kDefaultPageSize, kMaxPageSize),
                 {}};
  PageRequest request;
  if (page_size > 0) request.size = static_cast<size_t>(std::min(page_size, kMaxPageSize));
  if (token.empty()) return request;
  request.after = ParseToken(token, query);
  if (!request.after)
    return Error{ErrorCode::kInvalidArgument,
                 "INVALID_PAGE_TOKEN",
                 "page_token does not belong to this query",
                 "pass next_page_token of the same request, or none for the first page",
                 {}};
  return request;
}

std::string PageToken(const PageKey& last, std::string_view query) {
  return fmt::format("{:016x}{:016x}{:016x}{:016x}", Fingerprint(query), last[0], last[1], last[2]);
}

}  // namespace probed::daemon
