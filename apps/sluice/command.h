// The command table. One file per subcommand, each with one add_* function that declares its flags and its
// callback. Callbacks throw sluice::Error for every failure (main.cc prints it and picks the exit code), and
// Exit to leave with a code after they have printed everything themselves.
#pragma once

#include "flags/command_line.h"

namespace sluice::app {

void add_pack(Command& app);
void add_calibrate(Command& app);
void add_quantise(Command& app);
void add_unpack(Command& app);
void add_verify(Command& app);
void add_inspect(Command& app);
void add_list(Command& app);
void add_run(Command& app);
void add_chat(Command& app);
void add_serve(Command& app);
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
void add_template(Command& app);
void add_doctor(Command& app);
void add_version(Command& app);

}  // namespace sluice::app
