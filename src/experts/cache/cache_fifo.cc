// FIFO: experts leave in the order in which they came, used or not. Baseline of ZipMoE (arXiv 2601.21198)
// §5.4; SPEC §1.7.
#include "experts/cache/cache_policies.h"
#include "experts/cache/eviction_order.h"

namespace sluice::experts {
namespace {

class FifoCache final : public Cache {
 public:
  explicit FifoCache(Parts keep) : keep_(keep) {}
  void on_step(const StepReport& report) override {
    order_.release();
    for (ExpertId id : report.used) order_.hold(id);
  }
  Parts wanted(ExpertId) const override { return keep_; }
  void victims(Bytes need, const PinnedView& pinned, std::vector<Eviction>& out) override {
    order_.victims(need, pinned, out);
  }
  void on_insert(ExpertId id, Parts parts, Bytes bytes) override {
    order_.insert(id, {.first = inserted_++}, parts, bytes);
  }
  void on_evict(ExpertId id, Parts parts) override { order_.remove(id, parts); }
  std::string name() const override { return "fifo"; }

 private:
  Parts keep_;
  std::uint64_t inserted_ = 0;
  EvictionOrder order_;
};

}  // namespace

std::unique_ptr<Cache> make_fifo_cache(const CacheConfig& config) {
  return std::make_unique<FifoCache>(config.keep);
}

}  // namespace sluice::experts
