// Bytes on their way to a file, written by a thread of their own, so that who makes them does not wait for
// the disk.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "base/file.h"

namespace sluice {

// A ring of fixed size between one producer and one thread that writes. A producer that is faster than the
// disk waits; nothing is dropped. The thread writes when a quarter of the ring is full, and four times a
// second. What is written is synchronised, and dropped from the page cache, every `ring` bytes (every 64 KiB
// of a smaller one), so that at most twice that much memory is in use. Thread-compatible: one producer.
class BackgroundWriter {
 public:
  // Allocates `ring` bytes, ≥ 1, and starts the thread.
  BackgroundWriter(OutputFile file, Bytes ring);
  ~BackgroundWriter();  // gives up what close() has not seen written
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  // Appends a copy. Error(kIo) that an earlier write met; after one, nothing more is written.
  void write(std::span<const std::byte> data);
  void write(std::string_view text);
  // Waits for everything, then truncates the file to its first `keep` bytes, where writing goes on. The same
  // errors.
  void cut(Bytes keep);
  // Waits for everything, synchronises and closes. The same errors. Later writes are our own bug.
  void close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
