// All experts of the next layer, whatever the routing will be: the sliding window of DeepSpeed's parameter
// offloading, as ZipMoE compares with it (SPEC §1.10, `z-deepspeed`).
#include "experts/prefetch/prefetch.h"

namespace sluice::experts {
namespace {

class AllNextPrefetch final : public Prefetch {
 public:
  void propose(const LayerState& state, std::vector<PartRequest>& out) override {
    if (state.layer + 1 >= state.layers) return;
    std::uint32_t named = 0;
    for (std::uint32_t index = 0; index < state.experts && named < state.most; ++index) {
      const ExpertId id{static_cast<std::uint16_t>(state.layer + 1), static_cast<std::uint16_t>(index)};
      if (is_computable(state.residency->parts(id))) continue;
      out.push_back({id, state.certain, state.tier});
      ++named;
    }
  }
  std::string name() const override { return "all-next"; }
};

}  // namespace

std::unique_ptr<Prefetch> make_all_next_prefetch(const PrefetchConfig&) {
  return std::make_unique<AllNextPrefetch>();
}

}  // namespace sluice::experts
