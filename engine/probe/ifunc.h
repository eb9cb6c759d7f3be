#pragma once
// Which implementation a process has chosen for an IFUNC: read from the slots that its dynamic
// linker has filled. Reads memory of the process, stopped or not; any thread.

#include <optional>
#include <string>

#include "elf/file.h"
#include "engine/probe/address_space.h"
#include "engine/probe/file_cache.h"

namespace probed::probe {

class IfuncResolver {
 public:
  IfuncResolver(pid_t pid, const AddressSpace& space, FileCache& files)
      : pid_(pid), space_(space), files_(files) {}

  // Nothing while no slot of the process has been filled, as before its first instruction.
  std::optional<LinkAddr> Chosen(const elf::Module& definer, const elf::Symbol& ifunc);

 private:
  std::shared_ptr<const elf::File> Open(const elf::Module& module);
  std::optional<LinkAddr> FromSlots(const elf::Module& holder, const elf::File& file,
                                    const std::vector<LinkAddr>& slots, const elf::Module& definer,
                                    LinkAddr resolver);

  pid_t pid_;
  const AddressSpace& space_;
  FileCache& files_;
};

}  // namespace probed::probe
