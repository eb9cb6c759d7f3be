#pragma once
// Proto3 strings must be UTF-8, names of processes and files need not be. Pure.

#include <string>
#include <string_view>

namespace probed::daemon {

// `bytes` with every byte that is not part of a well-formed UTF-8 sequence as \xNN.
std::string Utf8(std::string_view bytes);

}  // namespace probed::daemon
