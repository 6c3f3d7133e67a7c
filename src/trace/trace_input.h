// A trace's bytes, buffered, with the offset for errors.
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

// The most bytes that readers hold at once: a record, all rows of a step, or the body of a file that goes
// layer by layer. A compressed file of a few KiB may claim and hold any number of bytes. A step of 100,000
// tokens with the logits of 256 experts has 100 MiB per layer; the published .mrt files have 4.
inline constexpr Bytes kMostStepBytes = 256 * kMiB;

// Thread-compatible.
class TraceInput {
 public:
  explicit TraceInput(std::unique_ptr<ByteSource> source, Bytes most_step_bytes = kMostStepBytes);

  const std::string& path() const { return source_->path(); }
  Bytes offset() const { return offset_; }  // where the next byte is
  // The next bytes, at most `count` ≤ 64 KiB, without taking them.
  std::string_view peek(std::size_t count);
  // Takes `count` bytes into `out`, which grows only as bytes arrive (a count in a file is only a claim).
  // False if the file ends first. Errors as check_step, before anything is read.
  bool read(Bytes count, std::vector<std::byte>& out);
  // The next line without its end; empty at the end of the file. Error(kInvalid) for a line beyond 64 KiB.
  // Valid until the next call.
  std::optional<std::string_view> line();
  // Error(kInvalid) if more than `most_step_bytes` have to be held at once.
  void check_step(Bytes bytes) const;

 private:
  bool fill();  // moves the rest to the front and reads on; false at the end

  std::unique_ptr<ByteSource> source_;
  Bytes most_step_bytes_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // range that is buffered and not taken
  Bytes offset_ = 0;
};

// Reads little-endian numbers from bytes that are known to exist.
template <class Number>
Number number_at(std::span<const std::byte> bytes, std::size_t offset) {
  Number value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace sluice::trace
