// Begins the passes of an engine, and knows which of them are open and which of them ran last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/forward/forward_parts.h"
#include "engine/forward/models.h"
#include "engine/forward/pass.h"
#include "engine/watch/routing_observer.h"

namespace sluice::engine {

// Thread-compatible.
class Passes {
 public:
  Passes(const ForwardParts& parts, const models::LayerForward& forward);
  Passes(const Passes&) = delete;
  Passes& operator=(const Passes&) = delete;

  // Checks the step, and reads the rows of its tokens. If another pass is open, that one is suspended:
  // nothing stays named for its read-ahead. Error(kInvalid) for token ids and positions out of range;
  // Error(kIo). REQUIRES: a step of 1 … chunk tokens, whose sequences are in no other pass; no more passes
  // are open than the workspace has room for.
  Pass begin(const Step& step);
  std::size_t open() const { return open_; }

  // `observer` watches all passes from now on; null: no observer. It must outlive this or its successor.
  void observe(RoutingObserver* observer) { observer_ = observer; }
  RoutingObserver* observer() const { return observer_; }

 private:
  friend class Pass;
  void check(const Step& step) const;
  std::size_t claim_rows();
  void take_turn(const Pass& pass);  // it runs from now on, and another one ran before, if any did
  // Before and after each stretch of layers that a pass computes.
  void enter(Pass& pass);
  void leave(Pass& pass) { pass.counts_.stop(parts_.experts); }
  void advance(Pass& pass, std::size_t to_layer);
  void finish(Pass& pass, const LogitSink& sink);
  void release(Pass& pass);

  const ForwardParts parts_;
  const models::LayerForward forward_;
  RoutingObserver* observer_ = nullptr;
  std::vector<bool> rows_taken_;
  std::size_t open_ = 0;
  std::uint64_t begun_ = 0;  // passes
  std::uint64_t last_ = 0;   // the number of the pass that ran last
};

}  // namespace sluice::engine
