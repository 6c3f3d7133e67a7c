// A data file of a store while it is being packed: written at any place, made durable in steps.
#pragma once

#include <span>
#include <string>

#include "base/bytes.h"
#include "base/files/write_back.h"

namespace sluice::store {

// Not thread-safe. Every failure, including a full disk, is an Error that names path and offset.
// Error(kCorrupt) if another program has cut the file: writing beyond its end would leave a hole, and in the
// end the right size.
class DataWriter {
 public:
  DataWriter() = default;
  // Opens (or creates) the file and cuts it to `keep` bytes; Error(kCorrupt) if it has fewer.
  static DataWriter open(const std::string& path, Bytes keep);
  DataWriter(DataWriter&& other) noexcept;
  DataWriter& operator=(DataWriter&& other) noexcept;
  ~DataWriter();  // closes; unsynced bytes may be lost

  void write_at(Bytes offset, std::span<const std::byte> data);
  void write_zeros(Bytes offset, Bytes length);
  void sync();  // fdatasync, then drops the pages from the cache
  bool is_open() const { return fd_ >= 0; }
  const std::string& path() const { return path_; }

 private:
  void check_size() const;

  int fd_ = -1;
  Bytes size_ = 0;  // as far as written
  bool dirty_ = false;
  WriteBack write_back_;
  std::string path_;
};

}  // namespace sluice::store
