#pragma once
// A process that dumps core keeps all its threads, and whatever they trace, until that is written
// (fs/coredump.c, coredump_wait): seconds, for the programs that wait for their tracer.

namespace probed::daemon {

// From now on a fatal signal ends this process at once; a copy of it, with the thread that got the
// signal, is what dumps core.
void LetACopyDumpCore();

}  // namespace probed::daemon
