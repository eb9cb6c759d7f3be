#pragma once
// Where the journal of patches is kept: a service has it in its runtime directory, so that the next
// start can clean up even if the guard was killed too; elsewhere it is a file without a name. Who
// writes it, and the guard of that one, hold a lock on it as long as they live.

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/engine.h"

namespace probed::daemon {

// Of the service manager (RuntimeDirectory=); empty: there is none.
std::string RuntimeDirectory();

// An empty journal, locked.
Result<UniqueFd> CreateJournal(const std::string& directory);
// Deletes the journal's name, if it has one: nothing in it has to be undone any more.
void RemoveJournal(int journal);
// Does what dead daemons and guards have left undone, by the journals in `directory`.
void CleanLeftovers(const std::string& directory, engine::Engine& engine);

}  // namespace probed::daemon
