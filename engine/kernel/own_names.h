#pragma once
// Names of our own definitions inside other text: an event that an event probe attaches to, the
// events of a trigger. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "engine/kernel/definition_line.h"

namespace probed::kernel {

class OwnNames {
 public:
  // `written`: as its writer knows what the kernel knows as `name`.
  void Add(const KernelName& written, const KernelName& name);

  // GROUP.EVENT, GROUP:EVENT and GROUP/EVENT, and synthetic events where they are called
  // ("onmatch(...).EVENT(...)", "trace(EVENT,...)"), as the kernel knows them.
  std::string ToKernel(std::string text) const;

 private:
  struct Entry {
    KernelName written, kernel;
  };
  std::vector<Entry> entries_;
};

// The way back: our prefix is nowhere in it.
std::string ToWritten(std::string text, const Owner& owner);

}  // namespace probed::kernel
