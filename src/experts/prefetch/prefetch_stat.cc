// STAT: the experts that followed this layer's choices most often in another text. EdgeMoE's prefetch as DALI
// compares with it; SPEC §3.4. Each choice of a token expects of the next layer's experts what followed it;
// the expectations of all choices are summed.
#include <algorithm>

#include "base/error.h"
#include "base/setting.h"
#include "experts/prefetch/expert_transitions.h"
#include "experts/prefetch/prefetch.h"

namespace sluice::experts {
namespace {

class StatPrefetch final : public Prefetch {
 public:
  explicit StatPrefetch(const ExpertTransitions& transitions) : transitions_(transitions) {}

  void propose(const LayerState& state, std::vector<PartRequest>& out) override {
    if (state.layer + 1 >= state.layers) return;
    SLUICE_CHECK(state.layers == transitions_.layers() && state.experts == transitions_.experts(),
                 "transitions of another model");
    expected_.assign(state.experts, 0);
    for (const Choice& choice : state.routing->choices)
      for (std::uint32_t e = 0; e < state.experts; ++e)
        expected_[e] += transitions_.share(state.layer, choice.expert, static_cast<std::uint16_t>(e));
    order_.clear();
    for (std::uint32_t e = 0; e < state.experts; ++e)
      if (expected_[e] > 0 && !is_computable(state.residency->parts(id_of(state, e)))) order_.push_back(e);
    std::ranges::sort(order_, [&](std::uint32_t a, std::uint32_t b) {
      return expected_[a] != expected_[b] ? expected_[a] > expected_[b] : a < b;
    });
    for (std::size_t i = 0; i < order_.size() && i < state.most; ++i)
      out.push_back({id_of(state, order_[i]), state.certain, state.tier});
  }
  std::string name() const override { return "stat"; }

 private:
  static ExpertId id_of(const LayerState& state, std::uint32_t expert) {
    return {static_cast<std::uint16_t>(state.layer + 1), static_cast<std::uint16_t>(expert)};
  }
  const ExpertTransitions& transitions_;
  std::vector<double> expected_;  // (N): tokens of the next layer
  std::vector<std::uint32_t> order_;
};

}  // namespace

std::unique_ptr<Prefetch> make_stat_prefetch(const PrefetchConfig& config) {
  if (config.transitions == nullptr)
    throw Error(ErrorKind::kUsage, "this prefetch must know which experts follow which")
        .in(Setting::kPrefetch)
        .expected("what follows which, counted in recorded routing")
        .found("stat")
        .fix("name recorded routing of another text: " + Setting::kRanksOf + " FILE");
  return std::make_unique<StatPrefetch>(*config.transitions);
}

}  // namespace sluice::experts
