#include "tests/engine/harness.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "engine/lang/payload.h"

namespace probed::engine {

namespace {

EngineOptions Chosen() {
  EngineOptions options;
  options.optimization.enabled = std::getenv("PROBED_TEST_OPTIMIZE") != nullptr;
  return options;
}

}  // namespace

EngineOptions Optimizing() {
  EngineOptions options;
  options.optimization.enabled = true;
  options.optimization.ring_bytes = 8u << 20;
  return options;
}

int Rounds(int otherwise) {
  const char* rounds = std::getenv("PROBED_TEST_ROUNDS");
  return rounds != nullptr ? std::atoi(rounds) : otherwise;
}

EngineTest::EngineTest() : EngineTest(Chosen()) {}

EngineTest::EngineTest(const EngineOptions& options) {
  auto engine = Engine::Create(options);
  EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().ToString());
  engine_ = std::move(*engine);
  events_ = engine_->Subscribe({.max_queued_bytes = 1u << 30, .wants_hit = {}, .wants_notice = {}});
}

TargetId EngineTest::Attach(const Puppet& puppet, AttachOptions options) {
  auto target = engine_->Attach(puppet.pid(), options);
  EXPECT_TRUE(target.ok()) << target.error().ToString();
  return target.ok() ? target->id : TargetId{};
}

std::vector<ProbeInfo> EngineTest::Create(TargetId target, const std::vector<std::string>& lines,
                                          const CreateOptions& options) {
  auto outcome = engine_->CreateProbes(target, lines, options);
  EXPECT_TRUE(outcome.ok()) << outcome.error().ToString();
  if (!outcome.ok()) return {};
  for (const auto& error : outcome->errors) {
    ADD_FAILURE() << lines[error.line] << ": " << error.error.ToString();
  }
  return outcome->probes;
}

ProbeCounters EngineTest::Counters(ProbeId id) {
  auto probe = engine_->GetProbe(id);
  EXPECT_TRUE(probe.ok());
  return probe.ok() ? probe->counters : ProbeCounters{};
}

DetachReport EngineTest::Detach(TargetId target) {
  auto report = engine_->Detach(target);
  EXPECT_TRUE(report.ok()) << report.error().ToString();
  return report.ok() ? *report : DetachReport{};
}

bool EngineTest::BecomesOptimized(ProbeId id) {
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < deadline) {
    auto probe = engine_->GetProbe(id);
    if (!probe.ok()) return false;
    if (probe->mechanism == Mechanism::kOptimized) return true;
    std::this_thread::yield();
  }
  ADD_FAILURE() << engine_->GetProbe(id)->reason;
  return false;
}

ProbeId EngineTest::DefineOptimized(TargetId target, const std::string& line) {
  ProbeId id = Define(target, line);
  EXPECT_TRUE(BecomesOptimized(id)) << line;
  return id;
}

std::vector<event::Item> EngineTest::Drain() {
  engine_->Flush();
  std::vector<event::Item> all;
  while (true) {
    auto items = events_->Next(4096, std::chrono::milliseconds(0));
    if (items.empty()) return all;
    std::move(items.begin(), items.end(), std::back_inserter(all));
  }
}

std::vector<event::HitRecord> EngineTest::DrainHits() {
  std::vector<event::HitRecord> hits;
  for (auto& item : Drain()) {
    EXPECT_FALSE(std::holds_alternative<event::LossNotice>(item));
    if (auto* hit = std::get_if<event::HitRecord>(&item)) hits.push_back(std::move(*hit));
  }
  return hits;
}

std::string EngineTest::Text(const event::HitRecord& hit, size_t argument) {
  auto values = lang::DecodePayload(*hit.schema, hit.payload);
  if (!values.ok() || values->size() <= argument) return "";
  const auto* text = std::get_if<lang::StringValue>(&(*values)[argument].elements.front());
  return text != nullptr && !text->fault ? text->bytes : "(fault)";
}

uint64_t EngineTest::First(const event::HitRecord& hit) {
  auto values = lang::DecodePayload(*hit.schema, hit.payload);
  EXPECT_TRUE(values.ok());
  if (!values.ok() || values->empty()) return ~0ull;
  return std::visit(
      [](const auto& value) -> uint64_t {
        if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>) {
          return static_cast<uint64_t>(value);
        }
        return ~0ull;
      },
      values->front().elements.front());
}

size_t ChangedTextBytes(int pid) {
  size_t changed = 0;
  std::string proc = "/proc/" + std::to_string(pid);
  UniqueFd memory(::open((proc + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
  std::ifstream maps(proc + "/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long start, end, offset;
    char permissions[5], path[512] = "";
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %*s %*s %511s", &start, &end, permissions,
                    &offset, path) < 5) {
      continue;
    }
    if (permissions[2] != 'x' || path[0] != '/') continue;
    std::string in_memory(end - start, '\0'), in_file(end - start, '\0');
    UniqueFd file(::open(path, O_RDONLY | O_CLOEXEC));
    if (::pread(memory.get(), in_memory.data(), in_memory.size(), static_cast<off_t>(start)) < 0) {
      return ~size_t{0};
    }
    ssize_t read = ::pread(file.get(), in_file.data(), in_file.size(), static_cast<off_t>(offset));
    for (ssize_t i = 0; i < read; ++i) {
      changed += in_memory[static_cast<size_t>(i)] != in_file[static_cast<size_t>(i)];
    }
  }
  return changed;
}

}  // namespace probed::engine
