// LFU: the expert used in the fewest events leaves; ties: the least recently used, then the lower id. Counts
// outlive eviction and include the running event. Baseline of ZipMoE (arXiv 2601.21198) §5.4; SPEC §1.7.
#include "experts/cache/cache_policies.h"
#include "experts/cache/eviction_order.h"
#include "experts/core/expert_table.h"

namespace sluice::experts {
namespace {

class LfuCache final : public Cache {
 public:
  explicit LfuCache(Parts keep) : keep_(keep) {}
  void on_step(const StepReport& report) override {
    order_.release();
    event_ = report.event;
    for (ExpertId id : report.used) order_.hold(id, {.first = ++counts_.at(id), .second = event_});
  }
  Parts wanted(ExpertId) const override { return keep_; }
  void victims(Bytes need, const PinnedView& pinned, std::vector<Eviction>& out) override {
    order_.victims(need, pinned, out);
  }
  void on_insert(ExpertId id, Parts parts, Bytes bytes) override {
    order_.insert(id, {.first = counts_.at(id), .second = event_}, parts, bytes);
  }
  void on_evict(ExpertId id, Parts parts) override { order_.remove(id, parts); }
  std::string name() const override { return "lfu"; }

 private:
  Parts keep_;
  std::uint64_t event_ = 0;
  ExpertTable<std::uint64_t> counts_;  // events that used the expert, resident or not
  EvictionOrder order_;
};

}  // namespace

std::unique_ptr<Cache> make_lfu_cache(const CacheConfig& config) {
  return std::make_unique<LfuCache>(config.keep);
}

}  // namespace sluice::experts
