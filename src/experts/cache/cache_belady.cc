// Belady: the expert whose next use is farthest away leaves (never used again first; ties: the lower id). An
// oracle: it reads the future. Belady, "A study of replacement algorithms for a virtual-storage computer",
// IBM Systems Journal 5(2), 1966; baseline of ZipMoE (arXiv 2601.21198) §5.4; SPEC §1.7.
#include "experts/cache/cache_policies.h"
#include "experts/cache/eviction_order.h"
#include "experts/cache/next_use.h"

namespace sluice::experts {
namespace {

class BeladyCache final : public Cache {
 public:
  BeladyCache(Parts keep, const RequestList& future) : keep_(keep), next_(future) {}
  void on_step(const StepReport& report) override {
    order_.release();
    next_.on_step(report);
    for (ExpertId id : report.used) order_.hold(id, farthest_first(id));
  }
  Parts wanted(ExpertId) const override { return keep_; }
  void victims(Bytes need, const PinnedView& pinned, std::vector<Eviction>& out) override {
    order_.victims(need, pinned, out);
  }
  void on_insert(ExpertId id, Parts parts, Bytes bytes) override {
    order_.insert(id, farthest_first(id), parts, bytes);
  }
  void on_evict(ExpertId id, Parts parts) override { order_.remove(id, parts); }
  std::string name() const override { return "belady"; }

 private:
  EvictionOrder::Key farthest_first(ExpertId id) const { return {.first = ~next_.after(id)}; }

  Parts keep_;
  NextUse next_;
  EvictionOrder order_;
};

}  // namespace

std::unique_ptr<Cache> make_belady_cache(const CacheConfig& config) {
  return std::make_unique<BeladyCache>(config.keep, *config.future);
}

}  // namespace sluice::experts
