// The wire format of protocol buffers (developers.google.com/protocol-buffers/docs/encoding), read field by
// field from bytes in memory. Allocates nothing; checks every length against the remaining bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::tokenizer {

class ProtobufReader {
 public:
  // `message` must outlive this. `name` and `offset` (of the message in the file) appear in errors.
  ProtobufReader(std::string_view message, const std::string& name, std::uint64_t offset)
      : rest_(message), name_(name), offset_(offset) {}

  // Reads the key of the next field; false at the end. Read the value with the function for its type, or skip
  // it.
  bool next();
  std::uint32_t field() const { return field_; }

  // Error(kInvalid) if the field has another wire type or is cut short.
  std::uint64_t varint();
  bool boolean() { return varint() != 0; }
  float fixed32_float();
  std::string_view bytes();
  ProtobufReader message();
  void skip();
  std::uint64_t offset() const { return offset_; }  // file offset of the next byte to read

 private:
  enum class Wire : std::uint8_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };
  [[noreturn]] void fail(std::string_view what) const;
  std::uint64_t read_varint();
  std::string_view take(std::uint64_t bytes);
  void require(Wire wire) const;

  std::string_view rest_;
  const std::string& name_;
  std::uint64_t offset_;
  std::uint32_t field_ = 0;
  Wire wire_ = Wire::kVarint;
};

}  // namespace sluice::tokenizer
