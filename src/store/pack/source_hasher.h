// SHA-256 of the weight files, computed during packing: it follows the reader, so that the pages it needs are
// still in the page cache, and drops them behind itself.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace sluice::store {

// Positions are bytes in all files placed one after another. Thread-safe.
class SourceHasher {
 public:
  struct Input {
    std::string path;
    Bytes size = 0;
    bool known = false;  // its SHA-256 is known: nothing to do
  };
  static constexpr Bytes kMemory = 4 * kMiB;  // that a hasher takes
  explicit SourceHasher(std::vector<Input> files);
  ~SourceHasher();  // stops the thread

  // The reader has been up to `position` (it may go back later; the hasher does not).
  void allow(Bytes position);
  void allow_all();
  // Whether hashing no longer needs these pages.
  bool is_past(Bytes position) const { return position_.load(std::memory_order_relaxed) >= position; }
  Bytes position() const { return position_.load(std::memory_order_relaxed); }

  // (index, SHA-256) of files finished since the last call. Rethrows the error that stopped the hashing.
  std::vector<std::pair<std::size_t, std::string>> take_finished();
  bool done();  // every file is finished; results may still have to be taken

 private:
  void run(const std::stop_token& stop);

  const std::vector<Input> files_;
  std::atomic<Bytes> position_{0};
  std::mutex mutex_;  // protects the members below
  std::condition_variable_any allowed_changed_;
  Bytes allowed_ = 0;
  std::vector<std::pair<std::size_t, std::string>> finished_;
  std::exception_ptr failure_;
  bool done_ = false;
  std::jthread thread_;  // last: started when all other members exist
};

}  // namespace sluice::store
