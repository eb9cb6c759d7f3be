#pragma once
// Fetch programs from definition lines.

#include <memory>
#include <string>

#include "engine/lang/definition.h"
#include "engine/lang/definition_set.h"

namespace probed::detour::testing {

// Of `arguments`, as in "a=%di:u64 b=+0(%si):string". Null, and the test fails, when refused.
std::shared_ptr<const lang::Definition> Define(const std::string& arguments,
                                               lang::Dialect dialect = lang::Dialect::kExtended,
                                               lang::ProbeKind kind = lang::ProbeKind::kEntry);

}  // namespace probed::detour::testing
