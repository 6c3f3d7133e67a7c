// Runs of one text that are decided each as if it were alone, and computed together: a world has policies and
// a logical residency of its own, and whoever computes has the experts that any of them uses.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "experts/layer_decider.h"

namespace sluice::experts {

// Sums over the decoded tokens of one world.
struct WorldCounts {
  std::uint64_t tokens = 0;  // decoded
  std::uint64_t places = 0;  // tokens of sparse layers
  double low = 0;            // over places: the share of the token's weight that was computed low
  double mass = 0;           // likewise: the score mass of the model's own experts that were not used
  Bytes bytes = 0;           // bytes of experts that its own cache would have had read
};

// A step is a part of the prompt that all worlds have, in one span, or one decoded token of each world, in
// the order of the worlds. A step that fails leaves the worlds of no use. Thread-compatible.
class Worlds {
 public:
  // What a use asks of the disk where nothing has been read ahead.
  using ReadBytes = std::function<Bytes(const Admission& used)>;

  // REQUIRES: policies without a device.
  Worlds(std::vector<LayerPolicies> policies, const SparseShape& shape, ReadBytes read_bytes);

  std::size_t size() const { return deciders_.size(); }
  void begin_step(std::span<const SequenceSpan> spans);
  void end_step();
  // Decides a layer of the running step in each world. The routing has the choices of token i of a step of
  // decoded tokens from world i, with the precisions that it computes with; it has none for a prompt, which
  // every world routes as the model does. Valid until the next call. Errors as Router::route.
  const Routing& decide(const ScoresView& scores);

  WorldCounts counts(std::size_t world) const;

 private:
  void add(std::size_t world, const LayerDecision& decision);

  std::vector<std::unique_ptr<LayerDecider>> deciders_;
  const ReadBytes read_bytes_;
  std::vector<WorldCounts> counts_;
  std::vector<SequenceSpan> spans_;  // the running step's: of a prompt one for all, else one for each world
  bool is_prompt_ = false;
  Routing routing_;
};

}  // namespace sluice::experts
