#pragma once
// Pagination by key: a token says after which item to go on, so items that come or go between two
// pages cost neither repeats nor holes. Tokens are opaque and belong to one query. Pure.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace probed::daemon {

inline constexpr int kDefaultPageSize = 100;
inline constexpr int kMaxPageSize = 10'000;

using PageKey = std::array<uint64_t, 3>;  // compared in order

struct PageRequest {
  size_t size = kDefaultPageSize;
  std::optional<PageKey> after;
};

// `query` is everything else that the caller asked for. INVALID_PAGE_SIZE for a negative size,
// INVALID_PAGE_TOKEN for a token that is not ours or of another query.
Result<PageRequest> ParsePage(int32_t page_size, std::string_view token, std::string_view query);
std::string PageToken(const PageKey& last, std::string_view query);

template <class Item>
struct Page {
  std::vector<Item> items;
  std::string next_token;  // empty on the last page
};

template <class Item, class KeyOf>
Page<Item> TakePage(std::vector<Item> items, const PageRequest& request, std::string_view query,
                    KeyOf key_of) {
  std::sort(items.begin(), items.end(),
            [&](const Item& a, const Item& b) { return key_of(a) < key_of(b); });
  auto first = items.begin();
  if (request.after)
    first = std::find_if(first, items.end(),
                         [&](const Item& item) { return key_of(item) > *request.after; });
  const size_t left = static_cast<size_t>(items.end() - first);
  Page<Item> page;
  if (left > request.size) page.next_token = PageToken(key_of(first[request.size - 1]), query);
  page.items.assign(std::make_move_iterator(first),
                    std::make_move_iterator(first + std::min(left, request.size)));
  return page;
}

}  // namespace probed::daemon
