// Static: what comes first stays, nothing is ever evicted. Under layers that are used in order, the first
// layers' experts fill the budget and the others are read at every use, as offloading by a device map does.
// SPEC §1.10, `z-accelerate`.
#include "experts/cache_policies.h"

namespace sluice::experts {
namespace {

class StaticCache final : public Cache {
 public:
  explicit StaticCache(Parts keep) : keep_(keep) {}
  void on_step(const StepReport&) override {}
  Parts wanted(ExpertId) const override { return keep_; }
  void victims(Bytes, const PinnedView&, std::vector<Eviction>&) override {}
  void on_insert(ExpertId, Parts, Bytes) override {}
  void on_evict(ExpertId, Parts) override {}
  std::string name() const override { return "static"; }

 private:
  Parts keep_;
};

}  // namespace

std::unique_ptr<Cache> make_static_cache(const CacheConfig& config) {
  return std::make_unique<StaticCache>(config.keep);
}

}  // namespace sluice::experts
