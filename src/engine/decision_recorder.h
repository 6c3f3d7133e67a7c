// Writes a run's cache decisions as text (experts/decision_log.h).
#pragma once

#include <memory>
#include <string>

#include "base/files/background_writer.h"
#include "base/files/unfinished_file.h"
#include "engine/watch/routing_observer.h"

namespace sluice::engine {

class Engine;  // engine.h

// Thread-compatible. A separate thread writes the file; later calls throw its errors. Without finish() the
// file is removed.
class DecisionRecorder final : public RoutingObserver {
 public:
  DecisionRecorder(const std::string& path, const Engine& engine);  // Error(kInvalid) if `path` exists
  void on_decisions(std::uint32_t sparse_layer, const experts::LayerDecision& decision) override;
  void finish(const Engine& engine);  // writes the last line and closes

  // Memory that a recorder takes, including the file's pages in the page cache.
  static constexpr Bytes kMemory = 512 * kKiB;

 private:
  BackgroundWriter out_;
  // Declared behind out_, which refuses existing files.
  UnfinishedFile unfinished_;
  std::uint64_t events_ = 0;
  std::string line_;
};

}  // namespace sluice::engine
