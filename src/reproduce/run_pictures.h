// Pictures of one run: the states in which experts were found, by rank, and the work of one layer's disk and
// threads.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/watch/routing_observer.h"
#include "experts/core/ids.h"
#include "fetch/timeline.h"

namespace sluice::reproduce {

// Counts the states in which decode steps found their experts. Observes an engine.
class StateCounter final : public engine::RoutingObserver {
 public:
  StateCounter(std::size_t layers, std::size_t experts)
      : counts_(layers, std::vector<std::array<std::uint64_t, 5>>(experts)) {}
  void on_step(const engine::Step& step) override { decoding_ = step.kind() == engine::StepKind::kDecode; }
  void on_resume(const engine::Step& step) override { on_step(step); }
  void on_decisions(std::uint32_t sparse_layer, const experts::LayerDecision& decision) override;
  // values[state F C S E M][rank]: accesses, all layers together; rank 0 is a layer's most used expert.
  std::vector<std::vector<double>> by_rank() const;

 private:
  std::vector<std::vector<std::array<std::uint64_t, 5>>> counts_;
  bool decoding_ = false;
};
std::string states_picture(const std::string& preset, const StateCounter& counter);

// Draws the busiest layer event of a recorded run: reads count most, then computed experts, then others.
std::string layer_gantt(const std::string& title, const fetch::Timeline& timeline);

}  // namespace sluice::reproduce
