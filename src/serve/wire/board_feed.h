// Changes of the experts' picture, made once for all who watch.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "serve/backend.h"

namespace sluice::serve {

// Thread-safe. Changes have numbers without gaps while somebody watches.
class BoardFeed {
 public:
  struct Change {
    std::uint64_t sequence = 0;
    std::string json;  // {"sequence":…,"set":[[i,state]…],"used":[i…]}
  };
  static constexpr std::chrono::milliseconds kPeriod{100};

  std::uint64_t sequence() const;
  // Looks at the board, at most once a period; a first watcher begins from what it is now.
  void look(const Backend& backend);
  // Changes behind a number, as far as they are still kept.
  std::vector<Change> since(std::uint64_t sequence) const;
  void watch(Backend& backend, int by);  // 1: one more watches, −1: one less
  std::size_t watchers() const;

 private:
  mutable std::mutex mutex_;
  std::size_t watchers_ = 0;
  std::uint64_t sequence_ = 0;
  ExpertBoard last_;
  std::chrono::steady_clock::time_point looked_{};
  std::deque<Change> kept_;
};

}  // namespace sluice::serve
