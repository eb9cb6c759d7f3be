#include "engine/tracee/code_reservation.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/file.h"
#include "engine/sys/proc.h"
#include "tests/tracee/tracer_test.h"

namespace probed::tracee {
namespace {

constexpr size_t kSize = 48;
constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kNarrow = 256;

class ReservationTest : public TracerTest {
 protected:
  // The number of stops that it took.
  size_t Reserve(std::span<WantedCode> wanted) {
    size_t stops = 0;
    tracer_->Call([&] {
      Process& process = *tracer_->Find(puppet_.pid());
      auto stop = [&](const std::function<void(Stopped&)>& work) {
        ++stops;
        return tracer_->WithOneStopped(process, std::chrono::seconds(5),
                                       [&](Stopped& stopped) -> Status {
                                         work(stopped);
                                         return {};
                                       });
      };
      EXPECT_TRUE(ReserveCode(process.arena(), wanted, stop).ok());
    });
    return stops;
  }

  void Free(std::span<const WantedCode> wanted) {
    tracer_->Call([&] { FreeCode(tracer_->Find(puppet_.pid())->arena(), wanted); });
  }

  std::vector<WantedCode> Near(size_t count) const {
    return std::vector<WantedCode>(
        count,
        {.window = Window::Around(nop_), .size = kSize, .place = RemoteAddr{}, .refusal = {}});
  }

  size_t CountMappings() const {
    const std::string maps = *sys::ReadMaps(puppet_.pid());
    return static_cast<size_t>(std::count(maps.begin(), maps.end(), '\n'));
  }

  Puppet puppet_{"counter", {"1", "10"}};
  const RemoteAddr nop_{puppet_.ReadNumber("ready", 16)};
};

void ExpectApart(std::vector<WantedCode> wanted) {
  std::sort(wanted.begin(), wanted.end(),
            [](const auto& a, const auto& b) { return a.place < b.place; });
  for (size_t i = 0; i < wanted.size(); ++i) {
    const WantedCode& one = wanted[i];
    ASSERT_NE(one.place.value, 0u) << one.refusal->message;
    EXPECT_GE(one.place, one.window.low);
    EXPECT_LT(one.place, one.window.high);
    if (i == 0) continue;
    EXPECT_GE(one.place - wanted[i - 1].place, wanted[i - 1].size);
  }
}

TEST_F(ReservationTest, ThousandsOfPlacesTakeOneStopAndOneMapping) {
  ASSERT_EQ(Attach(puppet_.pid()), "");
  const size_t mappings = CountMappings();
  auto wanted = Near(20000);
  EXPECT_EQ(Reserve(wanted), 1u);
  ExpectApart(wanted);
  EXPECT_LE(CountMappings(), mappings + 1);
  Free(wanted);
  auto again = Near(20000);
  EXPECT_EQ(Reserve(again), 0u);
  ExpectApart(again);
}

TEST_F(ReservationTest, PlacesThatMustBeSomewhereAreMappedThere) {
  ASSERT_EQ(Attach(puppet_.pid()), "");
  auto wanted = Near(100);
  for (uint64_t i = 0; i < 20; ++i) {
    RemoteAddr low{(nop_.value / kMiB - 400 - 3 * i) * kMiB + 0x1234};  // no heap is below it
    wanted.push_back({.window = {.low = low, .high = low + kNarrow, .near = low},
                      .size = kSize,
                      .place = RemoteAddr{},
                      .refusal = {}});
  }
  EXPECT_EQ(Reserve(wanted), 1u);
  ExpectApart(wanted);
}

// Where a large mapping is refused, small ones do; what has no room then says so.
TEST_F(ReservationTest, LittleAddressSpaceIsUsedUp) {
  ASSERT_EQ(Attach(puppet_.pid()), "");
  const std::string text = *ReadFile("/proc/" + std::to_string(puppet_.pid()) + "/statm");
  const uint64_t used = std::stoull(text) * 4096;
  const rlimit limit{.rlim_cur = used + kMiB / 2 + 8192, .rlim_max = RLIM_INFINITY};
  ASSERT_EQ(::prlimit(puppet_.pid(), RLIMIT_AS, &limit, nullptr), 0);
  auto wanted = Near(40000);
  Reserve(wanted);
  const auto placed = std::count_if(wanted.begin(), wanted.end(),
                                    [](const auto& one) { return one.place.value != 0; });
  EXPECT_GE(placed, static_cast<ptrdiff_t>(kMiB / 2 / kSize - 10));
  EXPECT_LT(placed, 40000);
  for (const WantedCode& one : wanted)
    EXPECT_NE(one.place.value != 0, one.refusal.has_value());
}

}  // namespace
}  // namespace probed::tracee
