// Tells code that works for long whether the user has pressed Ctrl-C.
#pragma once

namespace sluice::app {

// Is called once, before any command runs. Also ignores SIGPIPE and SIGXFSZ: a reader that went away and a
// limit of the size of files are failed writes (standard_output.h), behind which a command cleans up.
void install_signal_handlers();

// True from the first Ctrl-C (SIGINT, or SIGTERM) on, for every caller. A second one ends the program with
// exit code 130.
bool interrupted();

// For a command that goes on behind a Ctrl-C: the next one is the first again. False behind a SIGTERM, which
// is not forgotten.
bool forget_interrupt();

}  // namespace sluice::app
