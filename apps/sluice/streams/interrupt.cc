#include "streams/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string_view>

#include "streams/exit_code.h"

namespace sluice::app {
namespace {

std::atomic<int> interrupts = 0;
std::atomic<bool> told_to_end = false;
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void on_interrupt(int signal) {
  if (signal == SIGTERM) told_to_end = true;
  if (interrupts.fetch_add(1) == 0) return;
  constexpr std::string_view kText = "\nsluice: interrupted\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kText.data(), kText.size());
  ::_exit(kExitInterrupted);
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);  // begun work is taken back, as after Ctrl-C
  std::signal(SIGPIPE, SIG_IGN);           // a reader that went away is a failed write, see standard_output.h
  std::signal(SIGXFSZ, SIG_IGN);           // a file that may not grow is one, too, and reported in its place
}

bool interrupted() { return interrupts > 0; }

bool forget_interrupt() {
  if (told_to_end) return false;
  interrupts = 0;
  return true;
}

}  // namespace sluice::app
