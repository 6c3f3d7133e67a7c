// The command table. One file per subcommand, each with one add_* function that declares its flags and its
// callback. Callbacks throw sluice::Error for anything that fails (main.cc prints it and picks the exit code)
// and Exit to leave with a code after having printed everything themselves.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace sluice::app {

struct Exit {
  int code = 0;
};
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;
inline constexpr int kExitReaderGone = 141;  // as a shell shows a program that SIGPIPE has ended

void add_pack(CLI::App& app);
void add_calibrate(CLI::App& app);
void add_quantise(CLI::App& app);
void add_unpack(CLI::App& app);
void add_verify(CLI::App& app);
void add_inspect(CLI::App& app);
void add_run(CLI::App& app);
void add_forward(CLI::App& app);
void add_eval(CLI::App& app);
void add_profile(CLI::App& app);
void add_plan(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_detokenize(CLI::App& app);
void add_trace(CLI::App& app);
void add_simulate(CLI::App& app);
void add_lab(CLI::App& app);
void add_compare(CLI::App& app);
void add_reproduce(CLI::App& app);
void add_synth(CLI::App& app);
void add_doctor(CLI::App& app);
void add_version(CLI::App& app);

// True once after Ctrl-C (SIGINT, or SIGTERM) since the last call; main.cc installs the handler. A second one
// within one running command ends the program with exit code 130.
bool interrupted();
// The same for callees that ask many times: stays true.
std::function<bool()> interrupted_so_far();

}  // namespace sluice::app
