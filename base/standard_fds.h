#pragma once
// File descriptors 0 to 2 of a program that was started without them (`>&-`). Until something is
// open there, the next socket or file gets the number, and printing writes into it.

namespace probed {

// Opens /dev/null on each of 0, 1, 2 that is closed. Call first thing in main().
void OpenStandardFds();

}  // namespace probed
