#pragma once
// How long a change of a process may wait for its threads to stop.

#include <chrono>

namespace probed::probe {

inline constexpr std::chrono::milliseconds kStopDeadline{5000};

}  // namespace probed::probe
