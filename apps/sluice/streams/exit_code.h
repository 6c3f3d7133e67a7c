// Exit codes, and how a command leaves with one.
#pragma once

namespace sluice::app {

// Thrown by a command that has printed everything itself.
struct Exit {
  int code = 0;
};
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;
inline constexpr int kExitReaderGone = 141;  // as a shell shows a program that SIGPIPE has ended

}  // namespace sluice::app
