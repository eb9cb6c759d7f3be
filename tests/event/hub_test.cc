// The hub's promises: order, bounded memory, and a loss account that always balances.

#include "engine/event/hub.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>

namespace probed::event {
namespace {

using std::chrono::milliseconds;

HitRecord Hit(ProbeId probe, size_t payload = 0) {
  HitRecord hit;
  hit.probe = probe;
  hit.payload.resize(payload);
  return hit;
}

struct Received {
  std::vector<uint64_t> sequences;
  uint64_t lost = 0;
  size_t notices = 0;
  bool ordered = true;  // and every gap is announced by a notice that covers it
  uint64_t position = 0;

  void Take(const Item& item) {
    if (const auto* hit = std::get_if<HitRecord>(&item)) {
      if (hit->sequence != position + 1) ordered = false;
      position = hit->sequence;
      sequences.push_back(hit->sequence);
    } else if (const auto* loss = std::get_if<LossNotice>(&item)) {
      ++notices;
      lost += loss->lost;
      if (loss->first_sequence != position + 1) ordered = false;
      if (loss->last_sequence - loss->first_sequence + 1 != loss->lost) ordered = false;
      position = loss->last_sequence;
    }
  }
};

Received Drain(Subscription& subscription) {
  Received received;
  while (true) {
    auto items = subscription.Next(16, milliseconds(0));
    if (items.empty()) return received;
    for (const auto& item : items)
      received.Take(item);
  }
}

std::vector<Item> AllOf(Subscription& subscription) {
  std::vector<Item> all;
  while (true) {
    auto items = subscription.Next(16, milliseconds(0));
    if (items.empty()) return all;
    std::move(items.begin(), items.end(), std::back_inserter(all));
  }
}

TEST(Hub, DeliversInOrderToEverySubscriber) {
  Hub hub;
  auto first = hub.Subscribe({});
  auto second = hub.Subscribe({});
  for (int i = 0; i < 1000; ++i)
    hub.Publish(Hit(1));
  for (auto* subscription : {first.get(), second.get()}) {
    Received received = Drain(*subscription);
    EXPECT_EQ(received.sequences.size(), 1000u);
    EXPECT_TRUE(received.ordered);
    EXPECT_EQ(received.notices, 0u);
  }
  EXPECT_EQ(hub.published(), 1000u);
  EXPECT_EQ(hub.LostOf(1), 0u);
}

class HubLoss : public testing::TestWithParam<DropPolicy> {};

TEST_P(HubLoss, EveryRecordIsDeliveredOrAnnouncedAsLost) {
  Hub hub;
  auto slow = hub.Subscribe({.max_queued_bytes = 100 * (sizeof(Item) + 64),
                             .policy = GetParam(),
                             .wants_hit = {},
                             .wants_notice = {}});
  Received received;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 37; ++i)
      hub.Publish(Hit(7, 64));
    if (round % 5 != 4) continue;
    for (const auto& item : slow->Next(60, milliseconds(0)))
      received.Take(item);
  }
  Received rest = [&] {
    Received more = received;
    while (true) {
      auto items = slow->Next(16, milliseconds(0));
      if (items.empty()) return more;
      for (const auto& item : items)
        more.Take(item);
    }
  }();
  EXPECT_TRUE(rest.ordered);
  EXPECT_GT(rest.lost, 0u);
  EXPECT_EQ(rest.sequences.size() + rest.lost, 50u * 37u);
  EXPECT_EQ(rest.lost, slow->lost());
  EXPECT_EQ(rest.lost, hub.LostOf(7));
}

INSTANTIATE_TEST_SUITE_P(Policies, HubLoss,
                         testing::Values(DropPolicy::kDropOldest, DropPolicy::kDropNewest));

TEST(Hub, DropOldestKeepsTheNewestAndDropNewestTheOldest) {
  Hub hub;
  size_t room = 10 * sizeof(Item);
  auto newest = hub.Subscribe({.max_queued_bytes = room,
                               .policy = DropPolicy::kDropOldest,
                               .wants_hit = {},
                               .wants_notice = {}});
  auto oldest = hub.Subscribe({.max_queued_bytes = room,
                               .policy = DropPolicy::kDropNewest,
                               .wants_hit = {},
                               .wants_notice = {}});
  for (int i = 0; i < 100; ++i)
    hub.Publish(Hit(1));
  EXPECT_EQ(Drain(*newest).sequences.back(), 100u);
  EXPECT_EQ(Drain(*oldest).sequences.front(), 1u);
}

TEST(Hub, ARecordLargerThanTheQueueIsLostAndTheRestGoesOn) {
  Hub hub;
  auto subscription =
      hub.Subscribe({.max_queued_bytes = 4 * sizeof(Item), .wants_hit = {}, .wants_notice = {}});
  hub.Publish(Hit(1));
  hub.Publish(Hit(1, 1 << 20));
  hub.Publish(Hit(1));
  Received received = Drain(*subscription);
  EXPECT_TRUE(received.ordered);
  EXPECT_EQ(received.lost, 1u);
  EXPECT_EQ(received.sequences, (std::vector<uint64_t>{1, 3}));
}

// What happened to a target is no hit: it is counted by itself.
TEST(Hub, ANoticeThatIsDroppedIsNoLostHit) {
  Hub hub;
  auto subscription =
      hub.Subscribe({.max_queued_bytes = 4 * sizeof(Item), .wants_hit = {}, .wants_notice = {}});
  hub.Publish(TargetNotice{.target = {}, .root = {}, .detail = {}});
  for (int i = 0; i < 50; ++i)
    hub.Publish(Hit(1));
  const auto items = AllOf(*subscription);
  const auto& loss = std::get<LossNotice>(items.front());
  EXPECT_EQ(loss.notices, 1u);
  EXPECT_EQ(loss.lost + items.size() - 1, 50u);
  EXPECT_EQ(subscription->lost(), loss.lost);
  EXPECT_EQ(hub.LostOf(1), loss.lost);
}

TEST(Hub, FilterHidesWithoutCountingAsLoss) {
  Hub hub;
  auto odd = hub.Subscribe(
      {.wants_hit = [](ProbeId probe, TargetId) { return probe % 2 == 1; }, .wants_notice = {}});
  for (ProbeId probe = 0; probe < 10; ++probe)
    hub.Publish(Hit(probe));
  EXPECT_EQ(odd->Next(100, milliseconds(0)).size(), 5u);
  EXPECT_EQ(odd->lost(), 0u);
}

// A ring's losses: before the hits that come after them, to whoever wants one of those probes.
TEST(Hub, ALossOfNobodysIsToldWhereItIs) {
  Hub hub;
  auto all = hub.Subscribe({});
  SubscribeOptions first_only;
  first_only.wants_hit = [](ProbeId probe, TargetId) { return probe == 1; };
  auto one = hub.Subscribe(first_only);
  const std::vector<ProbeId> second{2};
  hub.Publish(Hit(1));
  hub.Publish({.lost = 5, .first_monotonic_ns = 10, .last_monotonic_ns = 10}, second);
  hub.Publish({.lost = 2, .first_monotonic_ns = 20, .last_monotonic_ns = 20}, second);
  hub.Publish(Hit(1));
  const auto items = AllOf(*all);
  ASSERT_EQ(items.size(), 3u);
  const auto& loss = std::get<LossNotice>(items[1]);
  EXPECT_EQ(loss.lost, 7u);
  EXPECT_EQ(loss.first_monotonic_ns, 10u);
  EXPECT_EQ(loss.last_monotonic_ns, 20u);
  EXPECT_EQ(all->lost(), 7u);
  EXPECT_EQ(AllOf(*one).size(), 2u);
  EXPECT_EQ(one->lost(), 0u);
  EXPECT_EQ(hub.LostOf(2), 0u) << "it is the ring's loss, which counts itself";
}

TEST(Hub, CloseEndsASubscriptionAfterWhatIsQueued) {
  auto hub = std::make_unique<Hub>();
  auto subscription = hub->Subscribe({});
  hub->Publish(Hit(1));
  hub.reset();
  EXPECT_FALSE(subscription->closed());
  EXPECT_EQ(subscription->Next(10, milliseconds(1000)).size(), 1u);
  EXPECT_TRUE(subscription->closed());
  EXPECT_TRUE(subscription->Next(10, milliseconds(1000)).empty());
}

TEST(Hub, CancelWakesABlockedReader) {
  Hub hub;
  auto subscription = hub.Subscribe({});
  std::thread reader([&] { EXPECT_TRUE(subscription->Next(1, milliseconds(60'000)).empty()); });
  subscription->Cancel();
  reader.join();
  EXPECT_TRUE(subscription->closed());
}

TEST(Hub, AReaderBesideThePublisherLosesNothing) {
  Hub hub;
  auto subscription =
      hub.Subscribe({.max_queued_bytes = 512u << 20, .wants_hit = {}, .wants_notice = {}});
  constexpr uint64_t kCount = 50'000;
  Received received;
  std::thread reader([&] {
    while (received.sequences.size() < kCount) {
      auto items = subscription->Next(1000, milliseconds(10'000));
      if (items.empty()) return;
      for (const auto& item : items)
        received.Take(item);
    }
  });
  for (uint64_t i = 0; i < kCount; ++i)
    hub.Publish(Hit(3, 16));
  reader.join();
  EXPECT_EQ(received.sequences.size(), kCount);
  EXPECT_TRUE(received.ordered);
}

UnwoundNotice Unwound(ProbeId probe, int tid) {
  return {.probe = probe, .target = {7, 1}, .tid = tid, .calls = 1, .schema = nullptr};
}

TEST(Hub, CallsLeftWithoutAReturnAreAddedUpAndNeverLost) {
  Hub hub;
  auto subscription = hub.Subscribe({.max_queued_bytes = 1, .wants_hit = {}, .wants_notice = {}});
  std::map<std::pair<ProbeId, int>, uint64_t> told;
  constexpr int kRounds = 50'000;
  size_t notices = 0;
  auto take = [&](milliseconds timeout) {
    for (const auto& item : subscription->Next(16, timeout)) {
      const auto* unwound = std::get_if<UnwoundNotice>(&item);
      if (unwound == nullptr) continue;
      told[{unwound->probe, unwound->tid}] += unwound->calls;
      ++notices;
    }
  };
  for (int i = 0; i < kRounds; ++i) {
    hub.Publish(Unwound(1 + i % 2, 10 + i % 3));
    take(milliseconds(0));
  }
  hub.Close();
  while (!subscription->closed())
    take(milliseconds(100));
  uint64_t sum = 0;
  for (const auto& [key, calls] : told)
    sum += calls;
  EXPECT_EQ(told.size(), 6u);
  EXPECT_EQ(sum, uint64_t{kRounds});
  EXPECT_LT(notices, uint64_t{kRounds} / 10);
}

TEST(Hub, CallsLeftWithoutAReturnAreToldBeforeTheEndOfTheirTarget) {
  Hub hub;
  auto subscription = hub.Subscribe({});
  hub.Publish(Unwound(1, 10));
  EXPECT_EQ(subscription->Next(16, milliseconds(10'000)).size(), 1u);
  hub.Publish(Unwound(1, 10));
  hub.Publish(TargetNotice{
      .target = {7, 1}, .root = {7, 1}, .change = TargetChange::kExited, .detail = {}});
  auto items = subscription->Next(16, milliseconds(0));
  ASSERT_EQ(items.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<UnwoundNotice>(items[0]));
  EXPECT_TRUE(std::holds_alternative<TargetNotice>(items[1]));
}

TEST(Hub, CallsOfUnwantedProbesAreNotTold) {
  Hub hub;
  auto subscription = hub.Subscribe(
      {.wants_hit = [](ProbeId probe, TargetId) { return probe == 2; }, .wants_notice = {}});
  hub.Publish(Unwound(1, 10));
  hub.Publish(Unwound(2, 10));
  auto items = subscription->Next(16, milliseconds(10'000));
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(std::get<UnwoundNotice>(items[0]).probe, 2u);
}

}  // namespace
}  // namespace probed::event
