// Routers: which experts compute each token, with which weight and precision. SPEC §0, §2.2, §4.5.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "experts/core/ids.h"
#include "experts/core/residency_view.h"
#include "experts/core/sequence_span.h"

namespace sluice::experts {

enum class Precision : std::uint8_t { kFull, kHigh, kLow };

// How a model turns selected scores into combine weights g (SPEC §0).
struct CombineRule {
  bool renormalise = false;  // g = s / (Σ_set s + epsilon), summed in ascending id; 0 where that sum is 0
  float epsilon = 0.0f;      // XVERSE: 1e-6
  float scale = 1.0f;        // routed_scaling_factor, applied last
};

// How a model limits and breaks up the selection.
struct SelectRule {
  std::uint32_t top_k = 1;
  std::uint32_t groups = 1;      // DeepSeek group_limited_greedy: experts in equal consecutive groups …
  std::uint32_t top_groups = 1;  // … of which the best ones (by their best expert) are kept
  std::uint32_t capacity = 0;    // Switch: tokens per expert and sequence in the whole forward; 0: unlimited
};

// Scores of one layer for the tokens of a step. Non-owning.
struct ScoresView {
  std::uint32_t layer = 0;             // sparse layer
  std::uint32_t experts = 0;           // N
  std::uint32_t tokens = 0;            // T
  std::span<const float> logits = {};  // (T, N)
  std::span<const float> scores = {};  // (T, N): softmax over all N in fp32
  // Whose tokens they are: cover all tokens, in order. Empty only for the scores of a layer ahead, by which
  // nothing is routed.
  std::span<const SequenceSpan> spans = {};

  StepKind kind() const { return step_kind(spans); }
};

struct Choice {
  std::uint16_t expert = 0;
  Precision precision = Precision::kFull;
  float weight = 0.0f;  // g
};

// May be ragged: a token may have fewer than k experts (capacity). The choices of a token are in ascending
// expert id.
struct Routing {
  std::vector<Choice> choices;       // all tokens, one after the other
  std::vector<std::uint32_t> begin;  // (T + 1): token t owns choices [begin[t], begin[t+1])
  // What the model's own router would choose, in the same token order, ascending within a token, with the
  // tokens' begins (T + 1). Both are empty when the router is exact.
  std::vector<std::uint16_t> exact;
  std::vector<std::uint32_t> exact_begin;
  std::span<const Choice> token(std::uint32_t t) const;
};

// One per run. What a router remembers of a request it keeps by sequence, so that sequences may share steps
// or take turns. Capacity rules count over a sequence's whole forward, whatever its chunks.
// Thread-compatible.
class Router {
 public:
  virtual ~Router() = default;
  // A step of these spans has ended, or has failed or been cancelled on the way: then its tokens come again.
  virtual void end_step(std::span<const SequenceSpan> /*spans*/) {}
  virtual void cancel_step(std::span<const SequenceSpan> /*spans*/) {}
  // The sequence has ended: what is remembered of it goes.
  virtual void end_sequence(SequenceId /*sequence*/) {}
  // Replaces `out`. Routers that change the model's routing do so for decoded tokens, and leave the tokens of
  // prompts as they are. Without tokens: no choices, begin = {0}. Error(kInvalid) that names layer, token and
  // expert for a score that is NaN or infinite (broken weights must not become text), and for a selection
  // that N experts cannot satisfy.
  virtual void route(const ScoresView& scores, const ResidencyView& residency, Routing& out) = 0;
  virtual std::string name() const = 0;
};

// The model's own routing: top-k of the scores (score descending, id ascending), within the best groups if
// grouped (best expert descending, group ascending). A choice over capacity is dropped; the weights are
// those of the remaining set. Error(kInvalid) if the rules contradict each other (top_k 0, more top groups
// than groups).
std::unique_ptr<Router> make_exact_router(const SelectRule& select, const CombineRule& combine);

}  // namespace sluice::experts
