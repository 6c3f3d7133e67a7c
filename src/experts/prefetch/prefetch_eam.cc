// EAM: fetches from the next layer as many experts as this layer used: those that the nearest past activation
// matrix used most. MoE-Infinity's prefetch (arXiv 2401.14361); SPEC §1.10.
#include <algorithm>
#include <set>

#include "experts/cache/activation_matrix.h"
#include "experts/prefetch/prefetch.h"

namespace sluice::experts {
namespace {

class EamPrefetch final : public Prefetch {
 public:
  void propose(const LayerState& state, std::vector<PartRequest>& out) override {
    std::set<ExpertId> used;
    for (const Choice& choice : state.routing->choices)
      used.insert({static_cast<std::uint16_t>(state.layer), choice.expert});
    history_.on_event(std::vector<ExpertId>(used.begin(), used.end()));
    if (state.layer + 1 >= state.layers || history_.matrices() == 0) return;

    std::vector<std::pair<double, std::uint16_t>> likely;
    for (std::uint32_t index = 0; index < state.experts; ++index) {
      const ExpertId id{static_cast<std::uint16_t>(state.layer + 1), static_cast<std::uint16_t>(index)};
      const double predicted = history_.predicted(id);
      if (predicted > 0) likely.emplace_back(-predicted, id.index);
    }
    std::sort(likely.begin(), likely.end());
    likely.resize(std::min(likely.size(), used.size()));
    std::uint32_t named = 0;
    for (const auto& [order, index] : likely) {
      if (named == state.most) break;
      const ExpertId id{static_cast<std::uint16_t>(state.layer + 1), index};
      if (is_computable(state.residency->parts(id))) continue;
      out.push_back({id, state.certain, state.tier});
      ++named;
    }
  }
  std::string name() const override { return "eam"; }

 private:
  ActivationHistory history_;
};

}  // namespace

std::unique_ptr<Prefetch> make_eam_prefetch(const PrefetchConfig&) { return std::make_unique<EamPrefetch>(); }

}  // namespace sluice::experts
