// Standard input that Ctrl-C ends: otherwise the system would restart a read that waits for a person or a
// pipe, and the first Ctrl-C would seem to do nothing.
#pragma once

#include <istream>

namespace sluice::app {

// One stream for the whole program. Its buffer throws Error(kInterrupted) if Ctrl-C arrives before the next
// bytes, and Error(kIo) if they cannot be read; formatted input hides both in badbit, so read through
// rdbuf(). Not thread-safe.
std::istream& standard_input();

}  // namespace sluice::app
