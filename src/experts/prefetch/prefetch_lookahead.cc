// The experts that the next layer's router would choose for the current state. The residual stream changes
// slowly from layer to layer, so most of them will be chosen. SPEC §2.3, without running the next layer's
// attention; §3.4's variant `raw`, but with the next layer's own norm.
#include <algorithm>
#include <numeric>

#include "experts/prefetch/prefetch.h"

namespace sluice::experts {
namespace {

class LookaheadPrefetch final : public Prefetch {
 public:
  void propose(const LayerState& state, std::vector<PartRequest>& out) override {
    if (state.next == nullptr) return;
    const ScoresView& scores = *state.next;
    const std::size_t experts = scores.experts, top_k = std::min<std::size_t>(state.top_k, experts);
    tokens_.assign(experts, 0);
    mass_.assign(experts, 0);
    order_.resize(experts);
    for (std::size_t t = 0; t < scores.tokens; ++t) {
      const float* const row = scores.scores.data() + t * experts;
      std::iota(order_.begin(), order_.end(), 0u);
      std::partial_sort(
          order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(top_k), order_.end(),
          [&](std::uint32_t a, std::uint32_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
      for (std::size_t i = 0; i < top_k; ++i) {
        tokens_[order_[i]] += 1;
        mass_[order_[i]] += row[order_[i]];
      }
    }
    order_.clear();
    for (std::uint32_t e = 0; e < experts; ++e)
      if (tokens_[e] > 0) order_.push_back(e);
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      if (tokens_[a] != tokens_[b]) return tokens_[a] > tokens_[b];
      return mass_[a] != mass_[b] ? mass_[a] > mass_[b] : a < b;
    });
    for (const std::uint32_t e : order_) {
      const ExpertId id{static_cast<std::uint16_t>(scores.layer), static_cast<std::uint16_t>(e)};
      if (!is_computable(state.residency->parts(id))) out.push_back({id, state.certain});
    }
  }
  PredictorKind predictor() const override { return PredictorKind::kStream; }
  std::string name() const override { return "lookahead"; }

 private:
  std::vector<std::uint32_t> tokens_;  // by expert: tokens that would choose it
  std::vector<double> mass_;           // by expert: sum of their scores
  std::vector<std::uint32_t> order_;
};

}  // namespace

std::unique_ptr<Prefetch> make_lookahead_prefetch() { return std::make_unique<LookaheadPrefetch>(); }

}  // namespace sluice::experts
