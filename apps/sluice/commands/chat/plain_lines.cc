#include <iostream>
#include <memory>
#include <streambuf>
#include <string>

#include "base/error.h"
#include "commands/chat/line_reader.h"
#include "streams/standard_input.h"

namespace sluice::app {
namespace {

class PlainLines final : public LineReader {
 public:
  explicit PlainLines(bool prompts) : prompts_(prompts) {}
  ReadLine read(const std::string& prompt) override {
    if (prompts_) std::cout << prompt << std::flush;
    using Traits = std::streambuf::traits_type;
    ReadLine line;
    std::streambuf& input = *standard_input().rdbuf();
    try {
      for (;;) {
        const auto next = input.sbumpc();
        if (Traits::eq_int_type(next, Traits::eof())) {
          if (line.text.empty()) line.end = LineEnd::kEndOfInput;
          break;
        }
        if (next == '\n') break;
        line.text += Traits::to_char_type(next);
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kInterrupted) throw;
      line.end = LineEnd::kInterrupted;
    }
    if (line.text.ends_with('\r')) line.text.pop_back();
    return line;
  }

 private:
  const bool prompts_;
};

}  // namespace

std::unique_ptr<LineReader> plain_lines(bool prompts) { return std::make_unique<PlainLines>(prompts); }

}  // namespace sluice::app
