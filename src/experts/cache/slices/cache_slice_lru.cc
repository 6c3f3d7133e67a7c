// Slice-LRU as a cache: SliceLru (slice_lru.h) decides on the events of decode steps, SliceWarmup
// (slice_warmup.h) on those of prompts, and on events that have prompt tokens beside decoded ones. When a
// prompt is over, the warm-up hands its slices over; sequences that are decoded between a prompt's events
// borrow them. SliceMoE; SPEC §4.3, §4.6.
#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/setting.h"
#include "experts/cache/cache_policies.h"
#include "experts/cache/event_cache.h"
#include "experts/cache/slices/slice_lru.h"
#include "experts/cache/slices/slice_warmup.h"

namespace sluice::experts {
namespace {

constexpr Parts kBoth = Part::kMsb | Part::kLsb;

class SliceLruCache final : public EventCache {
 public:
  explicit SliceLruCache(const SlicesConfig& config)
      : config_(config), lru_(config.rules), warmup_(config.warmup) {}

  bool decide_event(const StepReport& report, const ExpertSizes& sizes, Bytes capacity,
                    EventDecision& out) override {
    sizes_ = &sizes;
    if (report.used.empty()) return true;
    if (report.slices.prompt && config_.initial != InitialSlices::kLastLayer) {
      decide_prompt(report, capacity, out);
    } else {
      lend_to_lru();
      decide_decode(report, capacity, out);
    }
    return true;
  }

  void end_prompt(std::vector<Eviction>& out) override {
    if (!warming_up_) return;
    return_to_warmup();
    warming_up_ = lent_ = false;
    for (ExpertId id : warmup_.trim(*sizes_)) out.push_back({id, Part::kLsb});
    lru_.start(warmup_.msb_order(), warmup_.lsb_order(), *sizes_);
  }

  std::string name() const override { return "slice-lru"; }

 private:
  void decide_decode(const StepReport& report, Bytes capacity, EventDecision& out) {
    const SliceDemand& slices = report.slices;
    const std::span<const ExpertId> ranked = slices.ranked.empty() ? report.used : slices.ranked;
    lru_.on_event(ranked, slices.prompt ? ranked : slices.critical, *sizes_, capacity,
                  slices.prompt ? kAnyBytes : slices.lsb_allowance);
    for (const Slice& slice : lru_.evicted()) out.victims.push_back({slice.id, slice.part});
    for (const SliceLru::Request& request : lru_.requests()) {
      if (request.fate == SliceLru::Fate::kSkip) out.downgraded.push_back(request.id);
      if (request.fate != SliceLru::Fate::kMiss) continue;
      if (std::ranges::find(out.placed, request.id, &Placed::id) == out.placed.end())
        out.placed.push_back({request.id, lru_.parts(request.id)});
    }
    std::ranges::sort(out.placed, {}, &Placed::id);
  }

  // Reports the changes between before and after the event; within it a slice may leave, return and leave
  // again.
  void decide_prompt(const StepReport& report, Bytes capacity, EventDecision& out) {
    if (!warming_up_) {
      warming_up_ = true;
      warmup_.begin(lru_.msb(), lru_.lsb(), *sizes_);
      if (config_.initial == InitialSlices::kEmpty) drop_all(out);
    }
    if (config_.initial == InitialSlices::kEmpty) return;
    return_to_warmup();
    before_.clear();
    for (std::size_t i = 0; i < report.used.size(); ++i) {
      const ExpertId id = report.used[i];
      before_.push_back(warmup_.parts(id));
      warmup_.count(id, report.tokens.empty() ? 1 : report.tokens[i],
                    report.slices.critical_tokens.empty() ? 0 : report.slices.critical_tokens[i]);
    }
    warmup_.forget_evictions();
    for (ExpertId id : report.used) warmup_.admit(id, *sizes_, capacity);
    const std::span<const Slice> gone = warmup_.evictions();
    for (std::size_t i = gone.size(); i-- > 0;) {  // only the last departure of a slice counts
      const Slice& slice = gone[i];
      const auto used = std::ranges::lower_bound(report.used, slice.id);
      const bool of_event = used != report.used.end() && *used == slice.id;
      const bool was_there =
          !of_event || before_[static_cast<std::size_t>(used - report.used.begin())].has(slice.part);
      const Eviction eviction{slice.id, slice.part};
      const bool listed = std::ranges::any_of(out.victims, [&](const Eviction& other) {
        return other.id == eviction.id && other.parts == eviction.parts;
      });
      if (was_there && !listed && !warmup_.parts(slice.id).has(slice.part)) out.victims.push_back(eviction);
    }
    std::ranges::reverse(out.victims);
    for (std::size_t i = 0; i < report.used.size(); ++i) {
      const Parts after = warmup_.parts(report.used[i]);
      if (!before_[i].has_all(after)) out.placed.push_back({report.used[i], after});
    }
  }

  // Sequences are decoded while another one's prompt is read.
  void lend_to_lru() {
    if (!warming_up_ || lent_) return;
    lent_ = true;
    lru_.start(warmup_.msb_order(), warmup_.lsb_order(), *sizes_);
  }
  void return_to_warmup() {
    if (!lent_) return;
    lent_ = false;
    warmup_.resume(lru_.msb(), lru_.lsb(), *sizes_);
  }

  void drop_all(EventDecision& out) {
    for (ExpertId id : lru_.lsb()) out.victims.push_back({id, Part::kLsb});
    for (ExpertId id : lru_.msb()) out.victims.push_back({id, Part::kMsb});
    lru_.start({}, {}, *sizes_);
    warmup_.begin({}, {}, *sizes_);
  }

  SlicesConfig config_;
  SliceLru lru_;
  SliceWarmup warmup_;
  bool warming_up_ = false;  // a prompt is being read: warmup_ owns the slices, not lru_ …
  bool lent_ = false;        // … which holds them meanwhile
  const ExpertSizes* sizes_ = nullptr;
  std::vector<Parts> before_;  // scratch: by expert of the event
};

}  // namespace

void SlicesConfig::validate() const {
  rules.validate();
  warmup.validate();
}

std::unique_ptr<Cache> make_slice_lru_cache(const CacheConfig& config) {
  if (config.keep != kBoth) {
    throw Error(ErrorKind::kUsage, "slice-lru holds experts in slices")
        .in(Setting::kCache)
        .expected("a model packed in slices")
        .found("experts that are kept otherwise")
        .fix("pack the model in slices, or choose another cache");
  }
  SlicesConfig slices = config.slices;
  slices.warmup.random = config.slices.initial == InitialSlices::kRandom;
  slices.warmup.seed = config.seed;
  return std::make_unique<SliceLruCache>(slices);
}

}  // namespace sluice::experts
