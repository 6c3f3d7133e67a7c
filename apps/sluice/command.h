// The command table. One file per subcommand, each with one add_* function that declares its flags and its
// callback. Callbacks throw sluice::Error for every failure (main.cc prints it and picks the exit code), and
// Exit to leave with a code after they have printed everything themselves.
#pragma once

#include "command_line.h"

namespace sluice::app {

struct Exit {
  int code = 0;
};
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;
inline constexpr int kExitReaderGone = 141;  // as a shell shows a program that SIGPIPE has ended

void add_pack(Command& app);
void add_calibrate(Command& app);
void add_quantise(Command& app);
void add_unpack(Command& app);
void add_verify(Command& app);
void add_inspect(Command& app);
void add_run(Command& app);
void add_forward(Command& app);
void add_eval(Command& app);
void add_profile(Command& app);
void add_plan(Command& app);
void add_tokenize(Command& app);
void add_detokenize(Command& app);
void add_trace(Command& app);
void add_simulate(Command& app);
void add_lab(Command& app);
void add_compare(Command& app);
void add_reproduce(Command& app);
void add_synth(Command& app);
void add_doctor(Command& app);
void add_version(Command& app);

// True from the first Ctrl-C (SIGINT, or SIGTERM) on, whoever asks; main.cc installs the handler. A second
// one ends the program with exit code 130.
bool interrupted();

}  // namespace sluice::app
