// Writes bytes to a file on a thread of its own, so that the producer does not wait for the disk.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "base/files/file.h"

namespace sluice {

// A ring of fixed size between one producer and one writing thread. A producer that is faster than the disk
// waits; nothing is dropped. The thread writes when a quarter of the ring is full, and four times a second.
// After every `ring` bytes (64 KiB if the ring is smaller) it synchronises the file and drops the written
// pages from the page cache, so that ring and page cache together hold at most twice that much.
// Thread-compatible: one producer.
class BackgroundWriter {
 public:
  // Allocates `ring` bytes, ≥ 1, and starts the thread.
  BackgroundWriter(OutputFile file, Bytes ring);
  ~BackgroundWriter();  // drops bytes that close() has not written
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  // Appends a copy of `data`. Throws the Error(kIo) of an earlier write; after an error nothing more is
  // written.
  void write(std::span<const std::byte> data);
  void write(std::string_view text);
  // Waits until every byte is written, then truncates the file to its first `keep` bytes; later writes append
  // there. Throws as write().
  void cut(Bytes keep);
  // Waits until every byte is written, synchronises and closes the file. Throws as write(). Writing after
  // close() is a bug of the caller.
  void close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
