// Shows text as it comes, and under it a status of one or two lines, on a terminal; plain text elsewhere.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace sluice::app {

enum class Tone { kPlain, kDim };

// Writes to standard output; on a terminal in lines that end between words. Where the terminal cannot take
// back a word that has begun, words are shown when they are whole. The status is drawn at most ten times a
// second, below the text, and removed by finish(). Thread-compatible.
class LiveText {
 public:
  // `status` returns its lines for the given number of columns; it is called only when it is about to be
  // drawn, and may be empty: then there is no status. Without a `terminal`, colour and status are unused.
  LiveText(bool terminal, bool colour, std::function<std::string(std::size_t)> status);
  ~LiveText();
  void write(const std::string& written, Tone tone = Tone::kPlain);  // as output_text()
  void finish();                                                     // leaves the cursor after the text

 private:
  // The text in lines that the terminal need not break: a word that has begun and turns out to be too long
  // for its line is taken back there, and goes to the next. The last column stays free: behind a character in
  // it a terminal waits before it breaks the line, and drawing the status makes it forget that.
  std::string in_lines(const std::string& text);
  void put_character(const std::string& character, std::size_t width, std::size_t columns,
                     std::string& lines);
  void begin_word();

  bool terminal_, colour_, finished_ = false;
  bool whole_words_;  // a word is held back until it ends
  std::size_t column_ = 0, word_columns_ = 0;
  std::string word_;  // that stands last, or is held back, and may go on
  std::function<std::string(std::size_t)> status_;
  std::chrono::steady_clock::time_point drawn_at_;
};

bool stdout_moves_cursor();  // a terminal, and TERM set and not dumb
bool colour_allowed();       // NO_COLOR unset and TERM not dumb

}  // namespace sluice::app
