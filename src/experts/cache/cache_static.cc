// Static: experts stay in the order of layers as far as the budget goes, and all others are read at every
// use, as offloading by a device map does. An expert comes in at its first use and takes the place of experts
// of later layers that were used before it. SPEC §1.10, `z-accelerate`.
#include <map>

#include "experts/cache/cache_policies.h"
#include "experts/cache/event_cache.h"

namespace sluice::experts {
namespace {

class StaticCache final : public EventCache {
 public:
  explicit StaticCache(Parts keep) : keep_(keep) {}

  bool decide_event(const StepReport& report, const ExpertSizes& sizes, Bytes capacity,
                    EventDecision& out) override {
    for (const ExpertId id : report.misses) {
      const Bytes bytes = sizes.bytes(id).of(keep_);
      Bytes later = 0;  // bytes of experts that would make room, the last one first
      auto first = resident_.end();
      while (used_ - later + bytes > capacity && first != resident_.begin() && std::prev(first)->first > id)
        later += (--first)->second;
      if (used_ - later + bytes > capacity) continue;
      for (auto victim = first; victim != resident_.end(); victim = resident_.erase(victim))
        out.victims.push_back({victim->first, keep_});
      resident_.emplace(id, bytes);
      used_ += bytes - later;
      out.placed.push_back({id, keep_});
    }
    return true;
  }
  std::string name() const override { return "static"; }

 private:
  const Parts keep_;
  std::map<ExpertId, Bytes> resident_;
  Bytes used_ = 0;
};

}  // namespace

std::unique_ptr<Cache> make_static_cache(const CacheConfig& config) {
  return std::make_unique<StaticCache>(config.keep);
}

}  // namespace sluice::experts
