// A pull reader for untrusted JSON that may be large (safetensors headers, shard indexes, manifests): the
// caller asks for what the format expects next, nothing is built in between, and every error names its byte.
// For small configuration files use base/json/json.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace sluice::store {

// Use: r.begin_object(); while (r.next_key(key)) { … one value … } and r.begin_array(); while (r.next_item())
// { … }. Strict RFC 8259: valid UTF-8 only, no trailing commas, at most 64 levels deep. Every method throws
// Error(kInvalid) with file and byte if the text differs from what was asked for. `text` must outlive the
// reader. Not thread-safe.
class JsonReader {
 public:
  // `file` and `offset_bytes` (of the text within that file) appear in errors.
  JsonReader(std::string_view text, std::string file, Bytes offset_bytes = 0);

  void begin_object();
  bool next_key(std::string& key);  // false: the object has ended
  void begin_array();
  bool next_item();  // false: the array has ended
  void read_string(std::string& out);
  std::string read_string();
  std::uint64_t read_number();  // a whole number from 0 to 2^64 − 1, without fraction or exponent
  bool at_string();             // the next value is a string
  void skip_value();            // any value, checked as strictly as the others
  void end();                   // only blanks may follow

  Bytes offset() const { return offset_bytes_ + at_; }
  Bytes value_offset() const { return offset_bytes_ + value_at_; }  // where the last value (or key) starts
  // An error at the last value read.
  Error error(std::string_view message) const;

 private:
  void skip_blanks();
  char peek();
  void expect(char c, std::string_view what);
  unsigned read_hex4();
  void skip_number();
  void skip_literal();
  [[noreturn]] void fail(std::string_view message, std::string_view expected) const;

  std::string_view text_;
  std::string file_;
  Bytes offset_bytes_;
  std::size_t at_ = 0;
  std::size_t value_at_ = 0;   // start of the last token
  std::vector<bool> started_;  // per open object or array: an element was read
};

bool is_utf8(std::string_view text);

// Appends `text` as a JSON string, quotes included. `text` must be UTF-8.
void append_json_string(std::string& out, std::string_view text);

}  // namespace sluice::store
