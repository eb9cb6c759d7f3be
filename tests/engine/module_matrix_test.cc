// Files that are mapped in every way there is: by the program itself, twice, copied away, replaced.

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "elf/file.h"
#include "tests/engine/harness.h"

namespace probed::engine {
namespace {

namespace fs = std::filesystem;

// What a puppet has counted itself.
struct Counted {
  unsigned long calls = 0, wrong = ~0ul;
};

Counted Ask(Puppet& puppet, const std::string& line) {
  Counted counted;
  std::sscanf(puppet.Ask(line).c_str(), "%lu %lu", &counted.calls, &counted.wrong);
  return counted;
}

uint64_t OffsetOf(const std::string& path, const char* function) {
  auto file = elf::File::Open(path);
  auto symbol = file.ok() ? (*file)->FindFunction(function) : Result<elf::Symbol>(file.error());
  EXPECT_TRUE(symbol.ok());
  return symbol.ok() ? (*file)->ToOffset(symbol->address)->value : 0;
}

uint64_t OffsetOfObject(const std::string& path, const char* name) {
  auto file = elf::File::Open(path);
  auto symbol = file.ok() ? (*file)->FindObject(name) : Result<elf::Symbol>(file.error());
  EXPECT_TRUE(symbol.ok());
  return symbol.ok() ? (*file)->ToOffset(symbol->address)->value : 0;
}

class MatrixTest : public EngineTest {
 protected:
  MatrixTest() : directory_(fs::temp_directory_path() / "probed-matrix-XXXXXX") {
    std::string name = directory_;
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  ~MatrixTest() override { fs::remove_all(directory_); }

  std::string Copy(const std::string& from, const std::string& name) {
    fs::path to = directory_ / name;
    fs::copy_file(from, to, fs::copy_options::overwrite_existing);
    return to;
  }
  // As an installation does: the old file is gone, but for who has it.
  void Replace(const std::string& path, const std::string& by) {
    fs::rename(Copy(by, "new"), path);
  }
  ProbeInfo Info(ProbeId probe) { return *engine_->GetProbe(probe); }

  fs::path directory_;
};

class SelfMapped : public MatrixTest {
 protected:
  std::string file_ = Copy(Puppet::Path("libreloaded.so"), "library.so");
  uint64_t offset_ = OffsetOf(file_, "pure");
  Puppet puppet_{"mapping", {file_, std::to_string(offset_)}};
  std::string line_ = fmt::format("p:t/x {}:{:#x} number=%di:u64", file_, offset_);
};

TEST_F(SelfMapped, CodeThatIsMappedWithoutTheLinkerIsArmedBeforeItRuns) {
  TargetId target = Attach(puppet_);
  ProbeId probe = Define(target, line_);
  ProbeId returns = Define(target, fmt::format("r:t/y {}:{:#x} $retval", file_, offset_));
  EXPECT_EQ(Info(probe).state, ProbeState::kPending);
  for (int round = 1; round <= 5; ++round) {
    for (const char* how : {"map 3", "protect 4"}) {
      const Counted counted = Ask(puppet_, how);
      EXPECT_EQ(counted.wrong, 0u);
      EXPECT_EQ(Counters(probe).hits, counted.calls);
      EXPECT_EQ(Counters(returns).hits, counted.calls);
      EXPECT_EQ(Info(probe).state, ProbeState::kGone);
    }
  }
  EXPECT_EQ(Detach(target).warning, "");
  EXPECT_EQ(ChangedTextBytes(puppet_.pid()), 0u);
}

TEST_F(SelfMapped, ASharedMappingIsRefusedAndTheFileStaysAsItIs) {
  const std::string before = Puppet::Path("libreloaded.so");
  TargetId target = Attach(puppet_);
  ProbeId probe = Define(target, line_);
  EXPECT_EQ(Ask(puppet_, "map 3 shared").wrong, 0u);
  EXPECT_EQ(Counters(probe).hits, 0u);
  EXPECT_EQ(Info(probe).state, ProbeState::kPending);
  EXPECT_EQ(std::system(fmt::format("cmp {} {}", before, file_).c_str()), 0);
  EXPECT_EQ(Ask(puppet_, "map 3").wrong, 0u);
  EXPECT_EQ(Counters(probe).hits, 3u);
}

TEST_F(SelfMapped, CodeThatIsMovedIsFollowed) {
  TargetId target = Attach(puppet_);
  auto created = Create(target, {line_}, {.optimize = false});
  ASSERT_EQ(created.size(), 1u);
  ProbeId probe = created.front().id;
  Ask(puppet_, "keep");
  EXPECT_EQ(Ask(puppet_, "call 5").wrong, 0u);
  EXPECT_EQ(Counters(probe).hits, 5u);
  Ask(puppet_, "move");
  EXPECT_EQ(Ask(puppet_, "call 5").wrong, 0u);
  EXPECT_EQ(Counters(probe).hits, 10u);
  EXPECT_EQ(Detach(target).warning, "");
  EXPECT_EQ(Ask(puppet_, "call 5").wrong, 0u);
  EXPECT_EQ(ChangedTextBytes(puppet_.pid()), 0u);
}

TEST_F(MatrixTest, ALibraryInTwoNameSpacesIsProbedInBothWithASemaphoreEach) {
  std::string library = Puppet::Path("libplugin.so");
  Puppet puppet("spaces", {library});
  TargetId target = Attach(puppet);
  ProbeId probe =
      Define(target, fmt::format("p:t/x {}:{:#x}({:#x})", library, OffsetOf(library, "plugin_work"),
                                 OffsetOfObject(library, "plugin_semaphore")));
  EXPECT_EQ(puppet.Ask("open"), "2 11");
  EXPECT_EQ(Counters(probe).hits, 4u);  // two constructors, two questions
  EXPECT_EQ(puppet.Ask("call 10"), "22 11");
  EXPECT_EQ(Counters(probe).hits, 26u);
  EXPECT_EQ(puppet.Ask("close"), "11 1");
  EXPECT_EQ(puppet.Ask("call 10"), "21 1");
  EXPECT_EQ(Counters(probe).hits, 26u + 1 + 11);
  EXPECT_EQ(Detach(target).warning, "");
  EXPECT_EQ(puppet.Ask("call 1"), "22 0");
  EXPECT_EQ(ChangedTextBytes(puppet.pid()), 0u);
}

class Remapped : public MatrixTest {
 protected:
  std::vector<ProbeId> DefineAll(TargetId target) {
    auto lines = [&](const char* function) {
      return std::vector{fmt::format("p:t/in_{0} {1}:{0} number=%di:u64", function, puppet_.path()),
                         fmt::format("r:t/out_{0} {1}:{0} $retval", function, puppet_.path())};
    };
    std::vector<ProbeId> ids;
    for (const auto& probe : Create(target, lines("near")))
      ids.push_back(probe.id);
    for (const auto& probe : Create(target, lines("far"), {.optimize = false}))
      ids.push_back(probe.id);
    return ids;
  }
  void ExpectHits(const std::vector<ProbeId>& probes, uint64_t hits) {
    ASSERT_EQ(probes.size(), 4u);
    for (ProbeId probe : probes) {
      EXPECT_EQ(Info(probe).state, ProbeState::kArmed) << Info(probe).reason;
      EXPECT_EQ(Counters(probe).hits, hits);
    }
  }

  Puppet puppet_{"remapped"};
};

TEST_F(Remapped, BreakpointsAndJumpsThatWereCopiedAlongGoOn) {
  engine_ = std::move(*Engine::Create(Optimizing()));
  TargetId target = Attach(puppet_);
  auto probes = DefineAll(target);
  ASSERT_EQ(probes.size(), 4u);
  ASSERT_TRUE(BecomesOptimized(probes[0]) && BecomesOptimized(probes[1]));
  EXPECT_EQ(Ask(puppet_, "call 7").wrong, 0u);
  EXPECT_EQ(Ask(puppet_, "remap").wrong, 0u);
  EXPECT_EQ(Ask(puppet_, "call 7").wrong, 0u);
  ExpectHits(probes, 14);
  // What makes the engine look at the maps again.
  Define(target, fmt::format("p:t/main {}:main", puppet_.path()));
  EXPECT_EQ(Ask(puppet_, "call 7").wrong, 0u);
  ExpectHits(probes, 21);
  EXPECT_EQ(Detach(target).warning, "");
  EXPECT_EQ(Ask(puppet_, "check").wrong, 0u);
  EXPECT_EQ(Ask(puppet_, "call 7").wrong, 0u);
}

TEST_F(Remapped, CodeThatWasMovedBeforeIsFound) {
  EXPECT_EQ(Ask(puppet_, "remap").wrong, 0u);
  TargetId target = Attach(puppet_);
  auto probes = DefineAll(target);
  EXPECT_EQ(Ask(puppet_, "call 7").wrong, 0u);
  ExpectHits(probes, 7);
  EXPECT_EQ(Detach(target).warning, "");
  EXPECT_EQ(Ask(puppet_, "check").wrong, 0u);
}

class Versions : public MatrixTest {
 protected:
  std::string old_ = Puppet::Path("libplugin.so"), new_ = Puppet::Path("libplugin-new.so");
  std::string path_ = Copy(old_, "libplugin.so");
  std::string line_ = fmt::format("p:t/x {}:plugin_work", path_);
};

TEST_F(Versions, OfOnePathAtOnceAreEachProbedWhereTheyHaveIt) {
  ASSERT_NE(OffsetOf(old_, "plugin_work"), OffsetOf(new_, "plugin_work"));
  Puppet first("loader", {path_});
  first.Ask("open");
  Replace(path_, new_);
  Puppet second("loader", {path_});
  second.Ask("open");
  TargetId in_first = Attach(first), in_second = Attach(second);
  ProbeId of_old = Define(in_first, line_), of_new = Define(in_second, line_);
  EXPECT_EQ(Info(of_old).offset, OffsetOf(old_, "plugin_work"));
  EXPECT_EQ(Info(of_new).offset, OffsetOf(new_, "plugin_work"));
  EXPECT_EQ(first.Ask("call 10"), "11");
  EXPECT_EQ(second.Ask("call 20"), "21");
  EXPECT_EQ(Counters(of_old).hits, 10u);
  EXPECT_EQ(Counters(of_new).hits, 20u);
  // The first process now loads what stands there now, in which nothing was defined.
  first.Ask("close");
  first.Ask("open");
  EXPECT_EQ(first.Ask("call 10"), "11");
  EXPECT_EQ(Counters(of_old).hits, 10u);
  EXPECT_EQ(Info(of_old).state, ProbeState::kGone);
  EXPECT_NE(Info(of_old).reason.find("another file"), std::string::npos) << Info(of_old).reason;
  EXPECT_EQ(Detach(in_first).warning + Detach(in_second).warning, "");
}

TEST_F(Versions, AFileThatIsWrittenOverIsRefused) {
  Puppet puppet("loader", {path_});
  TargetId target = Attach(puppet);
  ProbeId probe = Define(target, line_);
  puppet.Ask("open");
  EXPECT_EQ(puppet.Ask("call 10"), "11");
  EXPECT_EQ(Counters(probe).hits, 11u);
  puppet.Ask("close");
  Copy(new_, "libplugin.so");
  puppet.Ask("open");
  EXPECT_EQ(puppet.Ask("call 10"), "11");
  EXPECT_EQ(Counters(probe).hits, 11u);
  EXPECT_NE(Info(probe).reason.find("FILE_CHANGED"), std::string::npos) << Info(probe).reason;
  puppet.Ask("close");
  Copy(old_, "libplugin.so");
  puppet.Ask("open");
  EXPECT_EQ(puppet.Ask("call 10"), "11");
  EXPECT_EQ(Counters(probe).hits, 22u);
}

TEST_F(Versions, ADeletedFileIsProbedWhereItIsMapped) {
  Puppet puppet("loader", {path_});
  puppet.Ask("open");
  fs::remove(path_);
  TargetId target = Attach(puppet);
  ProbeId probe = Define(target, line_);
  EXPECT_EQ(puppet.Ask("call 10"), "11");
  EXPECT_EQ(Counters(probe).hits, 10u);
  EXPECT_EQ(Detach(target).warning, "");
}

}  // namespace
}  // namespace probed::engine
