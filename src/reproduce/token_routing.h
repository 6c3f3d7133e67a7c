// Routing token by token; prompts, outputs and batches of any length are composed from it for timed replay
// (lab/machine/pipeline.h).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lab/replay/replay.h"
#include "lab/replay/synthetic_routing.h"
#include "trace/routing_trace.h"

namespace sluice::reproduce {

// Sparse layers [first, last).
struct LayerRange {
  std::uint32_t first = 0, last = 0;
};

// Thread-compatible.
class TokenRouting {
 public:
  TokenRouting(std::uint32_t layers, std::uint32_t experts, std::uint32_t top_k);

  std::uint32_t layers() const { return layers_; }
  std::uint32_t experts() const { return experts_; }
  std::uint32_t top_k() const { return top_k_; }
  std::size_t tokens() const { return ids_.size() / layers_ / top_k_; }
  std::span<const std::uint16_t> chosen(std::size_t token, std::uint32_t layer) const {
    return std::span(ids_).subspan((token * layers_ + layer) * top_k_, top_k_);
  }

  void add_token(std::span<const std::uint16_t> ids);  // (L, k)

  // Appends one step in which these tokens pass these layers together. REQUIRES: at least one token and one
  // layer.
  void append_step(std::span<const std::size_t> tokens, LayerRange range, trace::TracePhase phase,
                   lab::Requests& requests) const;

 private:
  std::uint32_t layers_, experts_, top_k_;
  std::vector<std::uint16_t> ids_;  // (T, L, k)
};

// Reads every token of a trace. Error(kInvalid) if a token lacks top-k experts in a layer; otherwise errors
// as RoutingTrace::next; Error(kInterrupted).
TokenRouting read_token_routing(trace::RoutingTrace& trace, const std::function<bool()>& stop = {});

// The same from lab/replay/synthetic_routing.h.
TokenRouting synthetic_routing(const lab::SyntheticRouting& settings, lab::RoutingFacts& facts);

}  // namespace sluice::reproduce
