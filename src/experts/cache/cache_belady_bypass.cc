// Belady with bypass: after each event it keeps, among residents and the event's own experts, those whose
// next use is nearest (ties: the higher id stays). This is the true optimum for experts of one size, where a
// used expert need not be cached. With different sizes the farthest experts leave until the rest fits, which
// is good but not always optimal. An oracle. After Belady 1966 (cache_belady.cc); `sluice lab evict`, SPEC
// §1.7.
#include <algorithm>

#include "experts/cache/cache_policies.h"
#include "experts/cache/eviction_order.h"
#include "experts/cache/next_use.h"

namespace sluice::experts {
namespace {

class BeladyBypassCache final : public Cache {
 public:
  BeladyBypassCache(Parts keep, const RequestList& future) : keep_(keep), next_(future) {}
  void on_step(const StepReport& report) override {
    next_.on_step(report);
    for (ExpertId id : report.used) order_.hold(id, farthest_first(id));
    order_.release();
  }
  Parts wanted(ExpertId) const override { return keep_; }

  bool decide_event(const StepReport& report, const ExpertSizes& sizes, Bytes capacity,
                    EventDecision& out) override {
    // A rehearsal: takes in every miss that fits at all, then removes the farthest experts until the rest
    // fits.
    Bytes used = used_;
    rehearsed_.clear();
    for (ExpertId id : report.misses) {
      const bool resident = !order_.parts(id).empty();  // its resident parts make no view
      const Bytes bytes = sizes.bytes(id).of(keep_);
      if (resident || bytes > capacity) continue;
      order_.insert(id, farthest_first(id), keep_, bytes);
      rehearsed_.push_back(id);
      used += bytes;
    }
    order_.release();
    gone_.clear();
    while (used > capacity) {
      const ExpertId id = order_.first();
      const Bytes bytes = order_.bytes(id);
      used -= bytes;
      order_.remove(id, keep_);
      if (std::ranges::binary_search(rehearsed_, id)) {
        gone_.push_back(id);
      } else {
        out.victims.push_back({id, keep_});
        order_.insert(id, farthest_first(id), keep_, bytes);  // held: on_evict removes it
      }
    }
    std::ranges::sort(gone_);
    for (ExpertId id : rehearsed_) {
      if (std::ranges::binary_search(gone_, id)) continue;
      out.placed.push_back({id, keep_});
      order_.remove(id, keep_);  // on_insert puts it back
    }
    return true;
  }

  void victims(Bytes, const PinnedView&, std::vector<Eviction>&) override {}  // decide_event decides
  void on_insert(ExpertId id, Parts parts, Bytes bytes) override {
    order_.insert(id, farthest_first(id), parts, bytes);
    used_ += bytes;
  }
  void on_evict(ExpertId id, Parts parts) override {
    used_ -= order_.bytes(id);
    order_.remove(id, parts);
  }
  std::string name() const override { return "belady_bypass"; }

 private:
  EvictionOrder::Key farthest_first(ExpertId id) const { return {.first = ~next_.after(id)}; }

  Parts keep_;
  NextUse next_;
  EvictionOrder order_;
  Bytes used_ = 0;
  std::vector<ExpertId> rehearsed_, gone_;  // scratch of decide_event, ascending
};

}  // namespace

std::unique_ptr<Cache> make_belady_bypass_cache(const CacheConfig& config) {
  return std::make_unique<BeladyBypassCache>(config.keep, *config.future);
}

}  // namespace sluice::experts
