#pragma once
// An engine with a subscriber, and short words for what the tests do with it. With
// PROBED_TEST_OPTIMIZE in the environment sites become jumps, some time after they are made.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "tests/engine/puppet.h"

namespace probed::engine {

// Sites become jumps; rings are small, as many programs are looked at in turn.
EngineOptions Optimizing();

// PROBED_TEST_ROUNDS, of a test that can be made longer.
int Rounds(int otherwise);

class EngineTest : public testing::Test {
 protected:
  EngineTest();
  explicit EngineTest(const EngineOptions& options);

  TargetId Attach(const Puppet& puppet, AttachOptions options = {});
  // All lines must be accepted.
  std::vector<ProbeInfo> Create(TargetId target, const std::vector<std::string>& lines,
                                const CreateOptions& options = {});
  ProbeId Define(TargetId target, const std::string& line) {
    auto created = Create(target, {line});
    return created.empty() ? 0 : created.front().id;
  }
  ProbeCounters Counters(ProbeId id);
  DetachReport Detach(TargetId target);
  // Waits until the probe's site is a jump. False: it does not become one in time.
  bool BecomesOptimized(ProbeId id);
  ProbeId DefineOptimized(TargetId target, const std::string& line);
  // Every item published so far.
  std::vector<event::Item> Drain();
  std::vector<event::HitRecord> DrainHits();
  // Value of the first argument of a record.
  static uint64_t First(const event::HitRecord& hit);
  // Value of one that is a string; "(fault)" where there was none to read.
  static std::string Text(const event::HitRecord& hit, size_t argument);

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<event::Subscription> events_;
};

// Bytes of executable mappings of `pid` that differ from the file they are mapped from.
size_t ChangedTextBytes(int pid);

}  // namespace probed::engine
