// SMOE-PARTIAL: the experts that the next layer's router would score highest if the running layer ended with
// the experts that are in memory. Low-score experts are left out, because a missing one of them is replaced;
// SMOE-PARTIAL-ALL takes them as well. In prompts, which use nearly all experts, all of the next layer. SMoE
// (arXiv 2508.18983 §5.2); SPEC §2.3.
#include <algorithm>
#include <vector>

#include "experts/prefetch/prefetch.h"
#include "experts/prefetch/top_score_queue.h"
#include "experts/prefetch/workload_forecast.h"

namespace sluice::experts {
namespace {

class SmoePartial final : public Prefetch {
 public:
  SmoePartial(double alpha, bool all_of_top_k) : alpha_(alpha), all_of_top_k_(all_of_top_k) {}

  void propose(const LayerState& state, std::vector<PartRequest>& out) override {
    if (state.layer + 1 >= state.layers) return;
    find_resident(state);
    if (state.next != nullptr) return propose_predicted(state, out);
    const std::size_t tokens = state.routing->begin.size() - 1;
    if (tokens * state.top_k < state.experts) return;  // too few of them would be used
    std::uint32_t left = state.most;
    for (std::uint32_t e = 0; e < state.experts && left > 0; ++e) {
      if (resident_[e] != 0) continue;
      out.push_back(request(state, e));
      --left;
    }
  }
  PredictorKind predictor() const override { return PredictorKind::kPartial; }
  WorkloadForecast* forecast() override { return &forecast_; }
  std::string name() const override { return all_of_top_k_ ? "smoe-partial-all" : "smoe-partial"; }

 private:
  static ExpertId id_of(const LayerState& state, std::uint32_t e) {
    return {static_cast<std::uint16_t>(state.layer + 1), static_cast<std::uint16_t>(e)};
  }
  static PartRequest request(const LayerState& state, std::uint32_t e) {
    return {id_of(state, e), state.certain, state.tier};
  }

  void find_resident(const LayerState& state) {
    resident_.resize(state.experts);
    for (std::uint32_t e = 0; e < state.experts; ++e)
      resident_[e] = is_computable(state.residency->parts(id_of(state, e))) ? 1 : 0;
  }

  void propose_predicted(const LayerState& state, std::vector<PartRequest>& out) {
    const ScoresView& next = *state.next;
    const std::uint32_t k = std::min(state.top_k, next.experts);
    scores_.assign(next.scores.begin(), next.scores.end());
    const std::span<const float> logits = next.logits.empty() ? next.scores : next.logits;
    logits_.assign(logits.begin(), logits.end());
    forecast_.predict(
        {.tokens = next.tokens, .experts = next.experts, .top_k = k, .logits = logits_, .scores = scores_});
    queue_.predict({.tokens = next.tokens, .experts = next.experts, .top_k = k, .scores = scores_}, alpha_,
                   all_of_top_k_, resident_);
    const std::span<const std::uint32_t> order = queue_.order();
    for (const std::uint32_t e : order.first(std::min<std::size_t>(order.size(), state.most)))
      out.push_back(request(state, e));
  }

  const double alpha_;
  const bool all_of_top_k_;
  TopScoreQueue queue_;
  WorkloadForecast forecast_;            // for all that are predicted to be chosen
  std::vector<double> logits_, scores_;  // (T, N)
  std::vector<std::uint8_t> resident_;   // (N) of the next layer
};

}  // namespace

std::unique_ptr<Prefetch> make_smoe_partial_prefetch(const PrefetchConfig& config) {
  return std::make_unique<SmoePartial>(config.alpha, false);
}

std::unique_ptr<Prefetch> make_smoe_partial_all_prefetch(const PrefetchConfig& config) {
  return std::make_unique<SmoePartial>(config.alpha, true);
}

}  // namespace sluice::experts
