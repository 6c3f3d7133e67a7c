// Writes a run's cache decisions as text (experts/decision_log.h).
#pragma once

#include <memory>
#include <string>

#include "base/background_writer.h"
#include "base/unfinished_file.h"
#include "engine/engine.h"
#include "engine/routing_observer.h"

namespace sluice::engine {

// Thread-compatible. Written by a thread of its own; errors come out of later calls. Without finish() the
// file is removed.
class DecisionRecorder final : public RoutingObserver {
 public:
  DecisionRecorder(const std::string& path, const Engine& engine);  // Error(kInvalid) if `path` exists
  void on_decisions(std::uint32_t sparse_layer, const experts::EventOutcome& outcome) override;
  void finish(const Engine& engine);  // the last line; closes

  static constexpr Bytes kMemory = 512 * kKiB;  // that a recorder takes; the file's pages included

 private:
  BackgroundWriter out_;
  UnfinishedFile unfinished_;  // behind out_, which refuses files of others
  std::uint64_t events_ = 0;
  std::string line_;
};

}  // namespace sluice::engine
