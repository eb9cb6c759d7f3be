#pragma once
// What this process may attach to, in words that name the cause. capabilities(7), ptrace(2).

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace probed::engine {

struct Privileges {
  uint64_t capabilities = 0;  // permitted, bit CAP_*
  uid_t uid = 0;
  int yama_scope = -1;  // -1: no Yama
  bool ptrace_is_filtered = false;
};

Privileges ReadPrivileges();

// Other users' processes as well. Pure.
bool TracesAll(const Privileges& privileges);

// Whether another process with the same privileges could take over our targets. Pure.
bool HeirsMayAttach(const Privileges& privileges);

// One line each. Pure.
std::vector<std::string> Describe(const Privileges& privileges);

}  // namespace probed::engine
