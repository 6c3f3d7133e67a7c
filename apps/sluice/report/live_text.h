// Shows text as it comes, and under it a status of one or two lines, on a terminal; plain text elsewhere.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace sluice::app {

// Writes to standard output. The status is drawn at most ten times a second, below the text, and removed by
// finish(). Thread-compatible.
class LiveText {
 public:
  // `status` returns its lines for the given number of columns; it is called only when it is about to be
  // drawn. Without a `terminal`, colour and status are unused.
  LiveText(bool terminal, bool colour, std::function<std::string(std::size_t)> status);
  ~LiveText();
  void write(const std::string& written);  // as output_text()
  void finish();                           // leaves the cursor after the text

 private:
  // After a character in the last column a terminal waits before it wraps, and drawing the status line makes
  // it forget that; so this counts the column and ends the line.
  void end_full_line(const std::string& text);

  bool terminal_, colour_, finished_ = false;
  std::size_t column_ = 0;
  std::function<std::string(std::size_t)> status_;
  std::chrono::steady_clock::time_point drawn_at_;
};

bool stdout_moves_cursor();  // a terminal, and TERM set and not dumb
bool colour_allowed();       // NO_COLOR unset and TERM not dumb

}  // namespace sluice::app
