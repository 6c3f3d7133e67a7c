// No prefetch: a link carries only what a layer demands. The choice of ZipMoE and SliceMoE (SPEC §5.2).
#include "experts/prefetch/prefetch.h"

namespace sluice::experts {
namespace {

class NonePrefetch final : public Prefetch {
 public:
  void propose(const LayerState&, std::vector<PartRequest>&) override {}
  bool prefetches() const override { return false; }
  std::string name() const override { return "none"; }
};

}  // namespace

std::unique_ptr<Prefetch> make_none_prefetch(const PrefetchConfig&) {
  return std::make_unique<NonePrefetch>();
}

}  // namespace sluice::experts
