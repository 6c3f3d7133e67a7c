// One walk of a step through the layers of a model, as an object: it may be left at a layer's border, while
// other passes run, and go on later. Its logits do not depend on that (docs/steps.md, "Passes").
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/forward/pass_counts.h"
#include "engine/session/step.h"

namespace sluice::engine {

class Passes;

// Made by Passes::begin. What its step views, and Passes, must outlive it. A sequence is in one pass at a
// time. An exception out of advance() or finish() ends the pass; a pass that ends in another way than by
// finish() leaves its sequences as they were before it. Thread-compatible, together with all passes of an
// engine.
class Pass {
 public:
  Pass(Pass&& other) noexcept;
  Pass& operator=(Pass&&) = delete;
  ~Pass() { cancel(); }

  const Step& step() const { return step_; }
  // The first layer that is not computed yet; the last layer's index + 1 when all are.
  std::size_t layer() const { return layer_; }
  bool is_over() const { return passes_ == nullptr; }

  // Computes the layers up to the border before `to_layer`; none if the pass is there already. Error(kIo),
  // (kCorrupt), (kInvalid). REQUIRES: not over.
  void advance(std::size_t to_layer);
  // Computes the rest of the layers; gives `sink` the logits that it wants; adds the tokens to their
  // sequences. Errors as advance(), and what the sink throws.
  void finish(const LogitSink& sink);
  // At any border. Nothing if the pass is over.
  void cancel();

 private:
  friend class Passes;
  Pass(Passes& passes, const Step& step, std::size_t rows, std::uint64_t number, std::size_t first_layer);
  // Goes on and runs `body`; an exception ends the pass.
  template <class Body>
  void enter(const Body& body);

  Passes* passes_;  // null: the pass is over
  Step step_;
  std::size_t rows_;      // which residual stream of the workspace is the pass's
  std::uint64_t number_;  // its number among all passes of the engine
  std::size_t layer_;
  PassCounts counts_;
};

}  // namespace sluice::engine
