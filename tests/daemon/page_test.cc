#include "daemon/convert/page.h"

#include <gtest/gtest.h>

namespace probed::daemon {
namespace {

using Items = std::vector<uint64_t>;

PageKey KeyOf(uint64_t item) {
  return {item, 0, 0};
}

TEST(Page, DefaultsAndLimits) {
  EXPECT_EQ(ParsePage(0, "", "q")->size, 100u);
  EXPECT_EQ(ParsePage(7, "", "q")->size, 7u);
  EXPECT_EQ(ParsePage(1'000'000, "", "q")->size, 10'000u);
  EXPECT_EQ(ParsePage(-1, "", "q").error().reason, "INVALID_PAGE_SIZE");
}

TEST(Page, WalksAllItemsOnceInOrder) {
  Items all = {5, 3, 9, 1, 7};
  Items seen;
  std::string token;
  int pages = 0;
  do {
    auto request = ParsePage(2, token, "q");
    ASSERT_TRUE(request.ok());
    auto page = TakePage(all, *request, "q", KeyOf);
    seen.insert(seen.end(), page.items.begin(), page.items.end());
    token = page.next_token;
    ASSERT_LE(++pages, 5);
  } while (!token.empty());
  EXPECT_EQ(seen, (Items{1, 3, 5, 7, 9}));
  EXPECT_EQ(pages, 3);
}

TEST(Page, ExactlyFullLastPageHasNoToken) {
  EXPECT_EQ(TakePage(Items{1, 2}, *ParsePage(2, "", "q"), "q", KeyOf).next_token, "");
  EXPECT_EQ(TakePage(Items{}, *ParsePage(2, "", "q"), "q", KeyOf).next_token, "");
}

TEST(Page, GoesOnWhenItsLastItemIsGone) {
  const auto first = TakePage(Items{1, 2, 3, 4}, *ParsePage(2, "", "q"), "q", KeyOf);
  const auto second = TakePage(Items{1, 3, 4}, *ParsePage(2, first.next_token, "q"), "q", KeyOf);
  EXPECT_EQ(second.items, (Items{3, 4}));
}

TEST(Page, TokensBelongToOneQuery) {
  const std::string token = PageToken({1, 2, 3}, "probes of targets/1-2");
  EXPECT_EQ(ParsePage(0, token, "probes of targets/1-2")->after, (PageKey{1, 2, 3}));
  EXPECT_EQ(ParsePage(0, token, "probes of targets/1-3").error().reason, "INVALID_PAGE_TOKEN");
}

TEST(Page, GarbageIsRefused) {
  const std::string token = PageToken({1, 2, 3}, "q");
  for (const std::string& bad :
       {std::string("x"), token.substr(1), token + "0", token.substr(0, 63) + "g",
        token.substr(0, 16) + std::string(48, ' ')})
    EXPECT_FALSE(ParsePage(0, bad, "q").ok()) << bad;
}

}  // namespace
}  // namespace probed::daemon
