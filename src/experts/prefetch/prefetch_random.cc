// RANDOM: any experts of the next layer, drawn without looking. What every prediction must beat; DALI's
// weakest variant (SPEC §3.4). Where nothing limits the number, as many as this layer used.
#include <algorithm>
#include <utility>

#include "base/splitmix64.h"
#include "experts/prefetch/prefetch.h"

namespace sluice::experts {
namespace {

class RandomPrefetch final : public Prefetch {
 public:
  explicit RandomPrefetch(std::uint64_t seed) : random_(seed) {}

  void propose(const LayerState& state, std::vector<PartRequest>& out) override {
    if (state.layer + 1 >= state.layers) return;
    left_.clear();
    for (std::uint32_t e = 0; e < state.experts; ++e) {
      const ExpertId id{static_cast<std::uint16_t>(state.layer + 1), static_cast<std::uint16_t>(e)};
      if (!is_computable(state.residency->parts(id))) left_.push_back(id);
    }
    const std::size_t most = state.most != kAnyRequests ? state.most : used(state);
    for (std::size_t i = 0; i < left_.size() && i < most; ++i) {
      std::swap(left_[i], left_[i + random_.next() % (left_.size() - i)]);
      out.push_back({left_[i], state.certain, state.tier});
    }
  }
  std::string name() const override { return "random"; }

 private:
  // Experts that some token chose in this layer.
  std::size_t used(const LayerState& state) {
    is_used_.assign(state.experts, 0);
    for (const Choice& choice : state.routing->choices) is_used_[choice.expert] = 1;
    return static_cast<std::size_t>(std::ranges::count(is_used_, 1));
  }
  SplitMix64 random_;
  std::vector<ExpertId> left_;
  std::vector<std::uint8_t> is_used_;  // (N)
};

}  // namespace

std::unique_ptr<Prefetch> make_random_prefetch(const PrefetchConfig& config) {
  return std::make_unique<RandomPrefetch>(config.seed);
}

}  // namespace sluice::experts
