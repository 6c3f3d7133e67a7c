// What other threads may read of a running engine: the last snapshots that its own thread has published.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>

#include "engine/engine.h"
#include "serve/engine/engine_snapshot.h"
#include "serve/engine/expert_watch.h"

namespace sluice::serve {

// publish() is for the engine's thread; the rest is thread-safe.
class EngineBoard {
 public:
  // The engine must outlive this.
  explicit EngineBoard(engine::Engine& engine, Json plan);

  engine::RoutingObserver* watch() { return &watch_; }
  // Copies what has become old, or what somebody has asked for. `idle`: nothing follows for a while.
  void publish(const engine::BatchLoad& load, bool idle);
  // Whether publish() is wanted even if nothing happens.
  bool watched() const { return watchers_.load(std::memory_order_relaxed) > 0; }

  void set_watchers(std::size_t count) { watchers_.store(count, std::memory_order_relaxed); }
  ExpertBoard experts();
  std::string stats_json() const;
  std::string plan_json() const;
  void collect(MetricSet& metrics);

 private:
  using Clock = std::chrono::steady_clock;

  engine::Engine& engine_;
  const engine::RunReport run_;  // its references; of it other threads read what is thread-safe or constant
  const Json plan_;
  const Clock::time_point start_ = Clock::now();
  ExpertWatch watch_;
  std::atomic<std::size_t> watchers_ = 0;
  std::atomic<bool> board_wanted_ = true;
  Clock::time_point board_at_{}, snapshot_at_{};  // the first is written under the mutex
  EngineSnapshot stats_from_;

  mutable std::mutex mutex_;  // protects what follows
  ExpertBoard board_;
  EngineSnapshot snapshot_;
  std::string stats_;
};

}  // namespace sluice::serve
