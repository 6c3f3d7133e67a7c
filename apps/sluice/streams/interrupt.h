// Ctrl-C: asked for by whoever works for long.
#pragma once

namespace sluice::app {

// Once, before any command runs. Also ignores SIGPIPE: a reader that went away is a failed write
// (standard_output.h).
void install_signal_handlers();

// True from the first Ctrl-C (SIGINT, or SIGTERM) on, whoever asks. A second one
// ends the program with exit code 130.
bool interrupted();

}  // namespace sluice::app
