// How many experts each further token of a draft adds to a step: learned from the routing of tokens that are
// decoded anyway.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/plan/draft_kind.h"
#include "engine/watch/event_account.h"
#include "experts/core/sequence_span.h"

namespace sluice::engine {

// Follows one sequence, the first one that each step decodes. Thread-compatible. Its memory is fixed by the
// model: a few KiB.
class FreshExperts final : public EventAccount {
 public:
  using Means = std::array<double, kMostDrafts + 1>;

  FreshExperts(std::uint32_t sparse_layers, std::uint32_t top_k);

  void begin_step();  // its events follow; what a failed step has counted is dropped
  void on_event(const Step& step, const EventCosts& costs) override;
  void end_step();

  // By b, 0 … kMostDrafts: how many experts of a token, over all layers, none of the b tokens before it uses.
  // Means of late; 0 until they are known.
  const Means& means() const { return means_; }

 private:
  using Expert = std::uint16_t;
  static constexpr std::size_t kRing = kMostDrafts + 1;  // tokens: the running one and those before it

  // The experts that a token uses in a layer; `back`: 0 is the running token, 1 the one before it.
  std::span<Expert> held(std::size_t layer, std::size_t back);
  void follow(const SequenceSpan& span);

  const std::size_t layers_, top_k_;
  std::vector<Expert> held_;  // (kRing, layers, top_k)
  std::size_t newest_ = 0;    // place in the ring of the last token that is held
  std::size_t tokens_ = 0;    // that are held; each continues the one before
  experts::SequenceId sequence_ = 0;
  std::size_t layer_ = 0;  // the layer of the next event
  bool alone_ = false;     // the step has one token of the sequence
  Means sums_{}, means_{}, seen_{};
  std::array<std::size_t, kMostDrafts + 1>
      counts_{};  // tokens of the step whose b tokens before it are known
};

}  // namespace sluice::engine
