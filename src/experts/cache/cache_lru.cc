// LRU: the expert whose last use is oldest leaves; within one event the lower id. Baseline of ZipMoE (arXiv
// 2601.21198) §5.4; SPEC §1.7.
#include "experts/cache/cache_policies.h"
#include "experts/cache/eviction_order.h"

namespace sluice::experts {
namespace {

class LruCache final : public Cache {
 public:
  explicit LruCache(Parts keep) : keep_(keep) {}
  void on_step(const StepReport& report) override {
    order_.release();
    event_ = report.event;
    for (ExpertId id : report.used) order_.hold(id, {.first = event_});
  }
  Parts wanted(ExpertId) const override { return keep_; }
  void victims(Bytes need, const PinnedView& pinned, std::vector<Eviction>& out) override {
    order_.victims(need, pinned, out);
  }
  void on_insert(ExpertId id, Parts parts, Bytes bytes) override {
    order_.insert(id, {.first = event_}, parts, bytes);
  }
  void on_evict(ExpertId id, Parts parts) override { order_.remove(id, parts); }
  std::string name() const override { return "lru"; }

 private:
  Parts keep_;
  std::uint64_t event_ = 0;
  EvictionOrder order_;
};

}  // namespace

std::unique_ptr<Cache> make_lru_cache(const CacheConfig& config) {
  return std::make_unique<LruCache>(config.keep);
}

}  // namespace sluice::experts
