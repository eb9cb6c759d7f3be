// Where control really goes: programs are single-stepped, and every place they jump to must be a
// known entry, and every instruction they execute a known start. The oracle is the processor.
//
// PROBED_FLOW_STEPS sets how many instructions of each system program are executed.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/uio.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "engine/arch/x86_64/instruction.h"
#include "engine/probe/address_space.h"
#include "engine/probe/flow_source.h"
#include "tests/flow/stepped_program.h"

namespace probed::probe {
namespace {

struct AnalysedFile {
  std::string path;
  std::shared_ptr<const elf::File> file;
  std::shared_ptr<const arch::FlowMap> flow;
};

// An instruction of the program as it was met the first time.
struct Place {
  const AnalysedFile* file = nullptr;  // null: code of no file (vdso)
  uint64_t link_address = 0;
  uint8_t length = 0;
  bool is_call = false;
};

class Follower {
 public:
  explicit Follower(SteppedProgram& program) : program_(program) {}

  // Steps at most `limit` times and checks all of them.
  void Run(uint64_t limit) {
    const Place* place = Look(program_.ip());
    uint64_t ip = program_.ip();
    while (steps_ < limit && program_.Step()) {
      ++steps_;
      uint64_t next = program_.ip();
      if (next == ip) continue;  // a round of a rep
      if (place->is_call) returns_.insert(ip + place->length);
      const Place* arrival = Look(next);
      if (next != ip + place->length) CheckTransfer(*place, next, *arrival);
      ip = next;
      place = arrival;
    }
  }

  uint64_t steps() const { return steps_; }
  uint64_t transfers() const { return transfers_; }
  // Transfers to entries that are not known, in functions of which that is known.
  uint64_t doubtful() const { return doubtful_; }
  size_t places() const { return places_.size(); }
  const std::map<std::string, int>& problems() const { return problems_; }

 private:
  const Place* Look(uint64_t ip) {
    auto [known, is_new] = places_.try_emplace(ip);
    if (!is_new) return &known->second;
    Place& place = known->second;
    Locate(ip, place);
    uint8_t bytes[15] = {};
    iovec local{bytes, sizeof bytes};
    iovec remote{reinterpret_cast<void*>(ip), sizeof bytes};
    ssize_t got = ::process_vm_readv(program_.pid(), &local, 1, &remote, 1, 0);
    auto instruction = arch::Decode(std::span(bytes).first(got > 0 ? size_t(got) : 0), ip);
    if (instruction.ok()) {
      place.length = instruction->length;
      place.is_call = instruction->is_call;
    }
    CheckStart(place);
    return &place;
  }

  void Locate(uint64_t ip, Place& place) {
    const elf::Mapping* mapping = map_.has_value() ? map_->At({ip}) : nullptr;
    if (mapping == nullptr || !mapping->executable) {
      auto space = AddressSpace::Read(program_.pid());
      ASSERT_TRUE(space.ok());
      map_ = space->map();
      mapping = map_->At({ip});
    }
    if (mapping == nullptr || !mapping->path.starts_with('/')) return;
    place.file = Analyse(mapping->path);
    auto link = place.file->file->ToLinkAddr(mapping->offset + (ip - mapping->start.value));
    if (link.has_value()) place.link_address = link->value;
  }

  const AnalysedFile* Analyse(const std::string& path) {
    static std::map<std::string, AnalysedFile> files;
    AnalysedFile& file = files[path];
    if (file.flow != nullptr) return &file;
    file.path = path;
    file.file = elf::File::Open(path).value();
    file.flow = AnalyzeFlow(*file.file).value();
    return &file;
  }

  // Between functions, where no probe is optimized, data may be read as instructions.
  void CheckStart(const Place& place) {
    if (place.file == nullptr || place.file->flow->IsStart(place.link_address)) return;
    if (!place.file->file->FunctionAt({place.link_address}).has_value()) return;
    Report("executes what is not a start", place);
  }

  void CheckTransfer(const Place& from, uint64_t to, const Place& arrival) {
    ++transfers_;
    if (arrival.file == nullptr || returns_.contains(to)) return;
    const arch::FlowMap& flow = *arrival.file->flow;
    if (flow.IsEntered(arrival.link_address)) return;
    if (flow.IsInDoubt(arrival.link_address)) {
      ++doubtful_;
      return;
    }
    Report(fmt::format("{:#x} enters", from.link_address), arrival);
  }

  void Report(const std::string& what, const Place& place) {
    std::string text = fmt::format("{} {}+{:#x}", what, place.file->path, place.link_address);
    if (problems_[text]++ == 0) ADD_FAILURE() << text;
  }

  SteppedProgram& program_;
  std::optional<elf::ModuleMap> map_;
  std::unordered_map<uint64_t, Place> places_;
  std::unordered_set<uint64_t> returns_;  // behind calls that were executed
  uint64_t steps_ = 0, transfers_ = 0, doubtful_ = 0;
  std::map<std::string, int> problems_;
};

// The run-time address of `link` in the main program.
uint64_t Relocated(const SteppedProgram& program, const elf::File& file, LinkAddr link) {
  auto space = AddressSpace::Read(program.pid());
  auto offset = file.ToOffset(link);
  if (!space.ok() || !offset.has_value()) return 0;
  const elf::Module* module = space->map().FindPath(file.name());
  if (module == nullptr) return 0;
  auto places = module->Locate(*offset);
  return places.empty() ? 0 : places[0].value;
}

// From the function `from`, or else from the entry point, which the dynamic linker ends at.
void Follow(const std::vector<std::string>& command, const char* from, uint64_t limit) {
  auto program = SteppedProgram::Start(command);
  ASSERT_NE(program, nullptr);
  auto file = elf::File::Open(command[0]);
  ASSERT_TRUE(file.ok());
  LinkAddr link = (*file)->entry();
  if (from != nullptr) link = (*file)->FindFunction(from).value().address;
  ASSERT_TRUE(program->RunTo(Relocated(*program, **file, link)));
  Follower follower(*program);
  follower.Run(limit);
  fmt::print(
      "[   COUNT  ] {}: {} steps, {} transfers, {} distinct instructions, {} into "
      "doubtful functions\n",
      command[0], follower.steps(), follower.transfers(), follower.places(), follower.doubtful());
  EXPECT_LT(follower.doubtful(), follower.transfers() / 20);
  EXPECT_GT(follower.transfers(), 100u);
  if (follower.steps() < limit) {
    EXPECT_EQ(program->exit_status(), 0);
  }
}

TEST(TransferTest, TablesAndLandingPadsOfCompiledPrograms) {
  constexpr uint64_t kMoreThanTheyTake = 500'000;
  size_t programs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FLOW_FIXTURES)) {
    if (testing::Test::HasFailure()) return;
    ++programs;
    SCOPED_TRACE(entry.path().string());
    Follow({entry.path().string()}, "main", kMoreThanTheyTake);
  }
  EXPECT_GE(programs, 12u);
}

class SystemProgramTest : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(SystemProgramTest, GoesOnlyWhereEntriesAreKnown) {
  if (!std::filesystem::exists(GetParam()[0])) GTEST_SKIP() << GetParam()[0] << " is not installed";
  const char* steps = std::getenv("PROBED_FLOW_STEPS");
  Follow(GetParam(), nullptr, steps == nullptr ? 30'000 : std::strtoull(steps, nullptr, 0));
}

INSTANTIATE_TEST_SUITE_P(
    Programs, SystemProgramTest,
    testing::Values(
        std::vector<std::string>{"/usr/bin/bash", "-c",
                                 "for i in 1 2 3; do x=$((i * 7 ^ 3)); case $x in 4) "
                                 "printf '%s %x\\n' a$x $x;; *) : ${x//1/2};; esac; done"},
        std::vector<std::string>{"/usr/bin/python3.11", "-I", "-S", "-c",
                                 "print(sorted([str(i) for i in range(99)]))"},
        std::vector<std::string>{"/usr/bin/openssl", "dgst", "-sha256", "/bin/true"},
        std::vector<std::string>{"/usr/bin/redis-check-rdb", "--help"},
        std::vector<std::string>{"/usr/bin/perl", "-e", "print join ',', map { $_ * 2 } 1..50"}));

}  // namespace
}  // namespace probed::probe
