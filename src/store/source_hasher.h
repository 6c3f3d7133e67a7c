// SHA-256 of the weight files, computed beside the packing: it follows the reader, so that the pages it needs
// are still in the page cache, and drops them behind itself.
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

// Positions are bytes in the row of all files. Thread-safe.
class SourceHasher {
 public:
  struct Input {
    std::string path;
    Bytes size = 0;
    bool known = false;  // nothing to do
  };
  explicit SourceHasher(std::vector<Input> files);
  ~SourceHasher();  // stops

  // The reader has been up to `position` (it may go back later; the hasher does not).
  void allow(Bytes position);
  void allow_all();
  // Whether nobody needs these pages any more, as far as hashing goes.
  bool is_past(Bytes position) const { return position_.load(std::memory_order_relaxed) >= position; }
  Bytes position() const { return position_.load(std::memory_order_relaxed); }

  // (index, SHA-256) of files that were finished since the last call. Rethrows what stopped the hashing.
  std::vector<std::pair<std::size_t, std::string>> take_finished();
  bool done();  // every file is finished; they may still have to be taken

 private:
  void run(const std::stop_token& stop);

  const std::vector<Input> files_;
  std::atomic<Bytes> position_{0};
  std::mutex mutex_;  // protects the following
  std::condition_variable_any allowed_changed_;
  Bytes allowed_ = 0;
  std::vector<std::pair<std::size_t, std::string>> finished_;
  std::exception_ptr failure_;
  bool done_ = false;
  std::jthread thread_;  // last: started when all else is there
};

}  // namespace sluice::store
