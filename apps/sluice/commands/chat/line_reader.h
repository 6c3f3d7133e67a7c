// Where the lines of a chat come from: a person at a terminal, with keys to edit them, or a pipe.
#pragma once

#include <memory>
#include <string>

namespace sluice::app {

enum class LineEnd { kLine, kEndOfInput, kInterrupted };
struct ReadLine {
  std::string text;  // without the line feed; behind kInterrupted what was typed so far
  LineEnd end = LineEnd::kLine;
};

// Thread-compatible; one at a time, because they share standard input.
class LineReader {
 public:
  virtual ~LineReader() = default;
  // A line may hold line feeds, where it was pasted. Ctrl-C and SIGTERM end it: kInterrupted. Error(kIo).
  virtual ReadLine read(const std::string& prompt) = 0;
};

// Lines of standard input as they are. `prompts`: shows them, for a terminal that cannot edit lines.
std::unique_ptr<LineReader> plain_lines(bool prompts);
// Lines that are edited on a terminal. `history_file`: keeps them over runs; "": does not. A file that cannot
// be used is a warning.
std::unique_ptr<LineReader> edited_lines(const std::string& history_file);

// $XDG_STATE_HOME/sluice/chat_history, else below ~/.local/state; "" without a home.
std::string usual_history_file();

}  // namespace sluice::app
