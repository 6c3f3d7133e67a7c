// What a user says in one turn: a line, or several lines that belong together.
#pragma once

#include "commands/chat/line_reader.h"

namespace sluice::app {

// Lines that begin with """ go on up to a line that ends with """; a line that ends with \ goes on in the
// next. An end of the input ends the turn, which is then complete. Thread-compatible.
class TurnReader {
 public:
  explicit TurnReader(LineReader& lines) : lines_(lines) {}
  ReadLine read();

 private:
  LineReader& lines_;
};

}  // namespace sluice::app
