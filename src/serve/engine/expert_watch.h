// Which experts a run uses, layer by layer, and where they are.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/session/step.h"
#include "engine/watch/routing_observer.h"
#include "serve/backend.h"
#include "serve/histogram.h"

namespace sluice::engine {
struct RunReport;
}

namespace sluice::serve {

// What one layer has had in one kind of pass.
struct LayerCounts {
  std::uint64_t demand = 0, accesses = 0, hits = 0, misses = 0;
};

// Used by the engine's thread alone.
class ExpertWatch final : public engine::RoutingObserver {
 public:
  ExpertWatch(std::size_t layers, std::size_t experts);

  void on_step(const engine::Step& step) override;
  void on_routing(const experts::ScoresView& scores, const experts::Routing& routing) override;
  void on_decisions(std::uint32_t sparse_layer, const experts::LayerDecision& decision) override;

  // Tokens and sequences of each pass; thread-safe.
  const Histogram& tokens() const { return tokens_; }
  const Histogram& sequences() const { return sequences_; }
  // The part of heat that is left after this time.
  static float cooling(std::chrono::steady_clock::duration time);
  // Brings states, heat and uses up to date.
  void fill(const engine::RunReport& run, ExpertBoard& board);
  // By kind of pass (prefill, decode), and layer.
  const std::array<std::vector<LayerCounts>, 2>& counts() const { return counts_; }
  std::uint64_t demand() const { return demand_; }

 private:
  std::uint64_t demand_of(const experts::ScoresView& scores, const experts::Routing& routing);

  const std::size_t layers_, experts_;
  Histogram tokens_, sequences_;
  experts::StepKind kind_ = experts::StepKind::kPrompt;  // the kind of the routing that came last
  std::uint64_t demand_ = 0;
  std::array<std::vector<LayerCounts>, 2> counts_;
  std::vector<std::uint32_t> uses_;
  std::vector<float> heat_;
  std::vector<std::uint32_t> seen_;  // by expert: the last span that asked for it
  std::uint32_t span_ = 0;
  std::chrono::steady_clock::time_point cooled_ = std::chrono::steady_clock::now();
};

}  // namespace sluice::serve
