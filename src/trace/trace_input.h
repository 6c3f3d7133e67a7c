// A trace's bytes, buffered, with the offset that errors name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "trace/byte_source.h"

namespace sluice::trace {

// Thread-compatible.
class TraceInput {
 public:
  explicit TraceInput(std::unique_ptr<ByteSource> source);

  const std::string& path() const { return source_->path(); }
  Bytes offset() const { return offset_; }  // of the next byte
  // The next bytes, at most `count` ≤ 64 KiB of them, without taking them.
  std::string_view peek(std::size_t count);
  // Takes up to `count` bytes into `out`, which grows only as bytes arrive (a count in a file is a claim).
  // False if the file ends first.
  bool read(Bytes count, std::vector<std::byte>& out);
  // The next line without its end; nothing at the end of the file. Error(kInvalid) for one beyond 64 KiB.
  // Lasts until the next call.
  std::optional<std::string_view> line();

 private:
  bool fill();  // moves what is left to the front and reads on; false if nothing came

  std::unique_ptr<ByteSource> source_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // of what is buffered and not taken
  Bytes offset_ = 0;
};

// Little-endian numbers out of bytes that are known to be there.
template <class Number>
Number number_at(std::span<const std::byte> bytes, std::size_t offset) {
  Number value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace sluice::trace
