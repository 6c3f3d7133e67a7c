// A data file of a store while it is packed: written at any place, made durable in steps.
#pragma once

#include <span>
#include <string>

#include "base/bytes.h"

namespace sluice::store {

// Not thread-safe. Every failure, disk full included, is an Error that names path and offset; (kCorrupt)
// where something else has cut the file: written beyond its end, it would have a hole, and in the end the
// right size.
class DataWriter {
 public:
  DataWriter() = default;
  // Opens (or creates) the file and cuts it to `keep` bytes; Error(kCorrupt) if it has fewer.
  static DataWriter open(const std::string& path, Bytes keep);
  DataWriter(DataWriter&& other) noexcept;
  DataWriter& operator=(DataWriter&& other) noexcept;
  ~DataWriter();  // closes; what was not synced may be lost

  void write_at(Bytes offset, std::span<const std::byte> data);
  void write_zeros(Bytes offset, Bytes length);
  void sync();  // fdatasync, then drops the pages from the cache
  bool is_open() const { return fd_ >= 0; }
  const std::string& path() const { return path_; }

 private:
  void check_size() const;

  int fd_ = -1;
  Bytes size_ = 0;  // as it was written
  bool dirty_ = false;
  std::string path_;
};

}  // namespace sluice::store
