// No cache: every expert is read when it is used and dropped afterwards. The lower end of every comparison
// (SPEC §1.10, z-accelerate without its resident layers).
#include "experts/cache/cache_policies.h"

namespace sluice::experts {
namespace {

class NoneCache final : public Cache {
 public:
  void on_step(const StepReport&) override {}
  Parts wanted(ExpertId) const override { return {}; }
  void victims(Bytes, const PinnedView&, std::vector<Eviction>&) override {}
  void on_insert(ExpertId, Parts, Bytes) override {}
  void on_evict(ExpertId, Parts) override {}
  std::string name() const override { return "none"; }
};

}  // namespace

std::unique_ptr<Cache> make_none_cache(const CacheConfig&) { return std::make_unique<NoneCache>(); }

}  // namespace sluice::experts
