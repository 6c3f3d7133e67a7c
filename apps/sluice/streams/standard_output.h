// Standard output: the result and nothing else. Every write of the program goes through std::cout, and is
// checked here.
#pragma once

#include <fmt/core.h>

#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::app {

// Takes the place of std::cout's buffer as long as it lives; main() makes the one there is. The `<<` or flush
// whose write fails throws: Exit{kExitReaderGone} where the reader has closed its end of a pipe (`| head`),
// which needs no message, else Error(kIo). What is printed after that is dropped. A terminal sees everything
// at once, others at a flush or every 64 KiB. Thread-compatible: for the thread that runs the command.
class StandardOutput {
 public:
  StandardOutput();
  ~StandardOutput();  // drops what finish() has not written
  StandardOutput(const StandardOutput&) = delete;
  StandardOutput& operator=(const StandardOutput&) = delete;

  // Writes what is left. Throws as a write does; once more, what an earlier write has thrown.
  void finish();
  // Writes what is left as far as it can, behind an error that is to be told.
  void finish_silently() noexcept;

 private:
  class Buffer;
  std::unique_ptr<Buffer> buffer_;
  std::streambuf* before_ = nullptr;
};

template <class... Values>
void print_output(fmt::format_string<Values...> format, Values&&... values) {
  std::cout << fmt::format(format, std::forward<Values>(values)...);
}

// Text of a model or a user as standard output may have it. A file or a pipe gets its bytes as they are; on a
// terminal what would steer it is shown as \xNN, but line feeds and tabs.
std::string output_text(std::string_view text);

// For work that takes long and whose result goes to standard output at its end. Both write nothing.
//
// Before the work: throws what a write would throw now, as far as that can be known: of a closed file, a
// device that takes nothing, a disk without room, and a reader that has gone.
void check_output();
// The same for work whose result is a file, and which only tells of it there: a reader that has gone does not
// matter.
void check_output_device();
// While it goes on: interrupted(); Exit{kExitReaderGone} once the reader has closed its end.
bool interrupted_or_unread();

}  // namespace sluice::app
