// Routing token by token, out of which prompts, outputs and batches of any length are put together for timed
// replay (lab/pipeline.h).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lab/replay.h"
#include "trace/routing_trace.h"

namespace sluice::lab {

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

  // One step in which these tokens go through these layers together. REQUIRES: at least one of each.
  void append_step(std::span<const std::size_t> tokens, LayerRange range, trace::TracePhase phase,
                   Requests& requests) const;

 private:
  std::uint32_t layers_, experts_, top_k_;
  std::vector<std::uint16_t> ids_;  // (T, L, k)
};

// Every token of a trace. Error(kInvalid) if a token has not top-k experts in every layer; as
// RoutingTrace::next; Error(kInterrupted).
TokenRouting read_token_routing(trace::RoutingTrace& trace, const std::function<bool()>& stop = {});

// Synthetic routing of SPEC §6: z = b + x, b = -a·ln(rank) by layer, ranks exchanged for each prompt with
// probability d; x is AR(1) over the tokens of a prompt with φ and std σ. The best k are chosen.
struct SyntheticRouting {
  std::uint32_t layers = 1, experts = 1, top_k = 1;
  std::size_t prompts = 1, tokens = 1;  // tokens of each prompt
  double a = 1, d = .1, phi = .7, sigma = 1;
  std::uint64_t seed = 1;
};
struct SyntheticFacts {
  double f_1 = 0;      // share of the tokens of a prompt that choose a layer's most used expert, mean
  double mass = 0;     // of the chosen in the softmax of z, mean
  double overlap = 0;  // share of a token's experts that the token before it chose, too, mean
};
TokenRouting synthetic_routing(const SyntheticRouting& settings, SyntheticFacts& facts);

}  // namespace sluice::lab
