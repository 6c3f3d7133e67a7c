// The bytes of a trace from start to end, from a plain or a compressed file.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/bytes.h"

namespace sluice::trace {

// Thread-compatible.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills `out`; fewer bytes only at the end. Error(kIo); (kCorrupt) for a broken compressed file.
  virtual std::size_t read(std::span<std::byte> out) = 0;
  const std::string& path() const { return path_; }

 protected:
  explicit ByteSource(std::string path) : path_(std::move(path)) {}

 private:
  std::string path_;
};

// A file whose pages are dropped from the page cache behind the reader. NAME.zst is decompressed on the way;
// offsets then count decompressed bytes. Error(kNotFound), (kIo).
std::unique_ptr<ByteSource> open_bytes(const std::string& path);
// Bytes in memory, which must outlive the source; `name` appears in errors.
std::unique_ptr<ByteSource> bytes_in_memory(std::span<const std::byte> bytes, const std::string& name);

}  // namespace sluice::trace
