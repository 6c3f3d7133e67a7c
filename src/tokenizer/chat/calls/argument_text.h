// The arguments of a call, from the JSON value that a model wrote: the bytes as they are; of a string its
// content.
#pragma once

#include <string>
#include <string_view>

namespace sluice::tokenizer {

// The content of a string of JSON that comes in pieces, between and with its quotes. Escapes that JSON does
// not know stay as they are; halves of pairs become U+FFFD. Thread-compatible.
class StringContent {
 public:
  std::string append(std::string_view raw);
  std::string finish();  // what was held back

 private:
  void add(char byte, std::string& text);
  void add_code(std::string& text);

  std::string escape_;  // that has begun
  unsigned high_ = 0;   // the first half of a pair
};
std::string string_content(std::string_view raw);

class ArgumentText {
 public:
  std::string append(std::string_view raw);
  std::string finish();

 private:
  bool begun_ = false, is_string_ = false;
  StringContent content_;
};

// A text as a string of JSON, with its quotes.
std::string quoted_json(std::string_view text);

}  // namespace sluice::tokenizer
