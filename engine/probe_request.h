#pragma once
// Judges the lines of one create request: language, file, instruction. What it accepts is in the
// definition set until Undo(); nothing of a process is touched. Caller's thread, under `control`.

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/probe/boundaries.h"
#include "engine/probe/installer.h"
#include "engine/probe/probe.h"
#include "engine/target_namespace.h"

namespace probed::engine {

// Outstanding returns of a probe for which nobody says it. Deep recursion is common, and each costs
// us about 100 bytes.
inline constexpr uint32_t kDefaultMaxActive = 65'536;

// What a line that the language refuses is as an Error.
Error ErrorOf(const lang::Verdict& verdict);

// A compiled filter for `probe`, or the refusal of it (line 0). "" and "0": none.
tl::expected<std::shared_ptr<const lang::Filter>, LineError> MakeFilter(const probe::Probe& probe,
                                                                        const std::string& text);

class ProbeRequest {
 public:
  ProbeRequest(lang::DefinitionSet& set, const probe::AddressSpace& space, TargetNamespace& names,
               const CreateOptions& options)
      : set_(set), space_(space), names_(names), options_(options) {}

  // False: see errors().
  bool Judge(const std::vector<std::string>& lines);
  void Undo();
  // What could not be installed.
  void Refuse(std::vector<probe::ProbeError> failures);

  const std::vector<std::shared_ptr<probe::Probe>>& probes() const { return probes_; }
  std::vector<LineError>& errors() { return errors_; }

 private:
  size_t LineOf(const probe::Probe& probe) const;
  void JudgeLine(size_t number, const std::string& line);
  void Apply(size_t number, const std::string& line);
  void JudgeFilter(size_t number, probe::Probe& probe);
  Status JudgeFile(probe::Probe& probe);
  void Refuse(size_t number, Error error, lang::Verdict verdict = {});

  lang::DefinitionSet& set_;
  const probe::AddressSpace& space_;
  TargetNamespace& names_;
  const CreateOptions& options_;
  probe::Boundaries boundaries_;
  std::vector<std::shared_ptr<probe::Probe>> probes_;
  std::vector<size_t> lines_;  // of each probe
  std::vector<LineError> errors_;
};

}  // namespace probed::engine
