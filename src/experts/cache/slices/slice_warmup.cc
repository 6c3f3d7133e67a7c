#include "experts/cache/slices/slice_warmup.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/error.h"
#include "base/splitmix64.h"

namespace sluice::experts {
namespace {

constexpr Parts kBothParts = Part::kMsb | Part::kLsb;

// A draw in [1, 2^63] that depends only on seed and id.
std::uint64_t draw(std::uint64_t seed, ExpertId id) {
  const std::uint64_t number = 1 + (std::uint64_t{id.layer} << 16 | id.index);
  return (splitmix64_mixed(seed + kSplitMix64Step * number) >> 1) + 1;
}

void put(EvictionOrder& order, ExpertId id, EvictionOrder::Key key, Part part) {
  order.insert(id, key, part, 0);
  order.release();
}

void take(EvictionOrder& order, ExpertId id, Part part) {
  if (!order.parts(id).empty()) order.remove(id, part);
}

}  // namespace

SliceWarmup::SliceWarmup(const WarmupRules& rules) : rules_(rules) {}

void SliceWarmup::begin(std::span<const ExpertId> msb, std::span<const ExpertId> lsb,
                        const ExpertSizes& sizes) {
  *this = SliceWarmup(rules_);
  hold(msb, lsb, sizes);
}

void SliceWarmup::resume(std::span<const ExpertId> msb, std::span<const ExpertId> lsb,
                         const ExpertSizes& sizes) {
  SliceWarmup counts(rules_);
  entries_.for_each([&](ExpertId id, const Entry& entry) {
    counts.entries_.at(id) = {entry.tokens, entry.critical, {}};
  });
  *this = std::move(counts);
  hold(msb, lsb, sizes);
}

void SliceWarmup::hold(std::span<const ExpertId> msb, std::span<const ExpertId> lsb,
                       const ExpertSizes& sizes) {
  for (ExpertId id : msb) entries_.at(id).parts = Part::kMsb;
  for (ExpertId id : lsb) {
    SLUICE_CHECK(entries_.at(id).parts == Part::kMsb);
    entries_.at(id).parts = kBothParts;
  }
  for (ExpertId id : msb) {
    const Entry& entry = entries_.at(id);
    used_ += sizes.bytes(id).of(entry.parts);
    enter(id, entry);
  }
}

void SliceWarmup::count(ExpertId id, std::uint64_t tokens, std::uint64_t critical) {
  Entry& entry = entries_.at(id);
  leave(id, entry);
  entry.tokens += tokens;
  entry.critical += critical;
  enter(id, entry);
}

void SliceWarmup::admit(ExpertId id, const ExpertSizes& sizes, Bytes capacity) {
  Entry& entry = entries_.at(id);
  leave(id, entry);
  used_ += sizes.bytes(id).of(kBothParts - entry.parts);
  entry.parts = kBothParts;
  enter(id, entry);
  while (used_ > capacity) evict_one(sizes);
}

std::vector<ExpertId> SliceWarmup::trim(const ExpertSizes& sizes) {
  std::vector<ExpertId> all = lsb_order();
  std::ranges::sort(all, {}, [&](ExpertId id) {
    return std::tuple(~worth(id, entries_.find(id)->critical), id);  // most first
  });
  const double most = std::floor(rules_.rho * static_cast<double>(msb_count_));
  auto first = all.begin();
  while (first != all.end() && static_cast<double>(first - all.begin()) < most &&
         worth(*first, entries_.find(*first)->critical) > 0)
    ++first;
  std::vector<ExpertId> gone(first, all.end());
  std::ranges::sort(gone);
  for (ExpertId id : gone) evict_lsb(id, sizes);
  return gone;
}

Parts SliceWarmup::parts(ExpertId id) const {
  const Entry* entry = entries_.find(id);
  return entry == nullptr ? Parts() : entry->parts;
}

std::vector<ExpertId> SliceWarmup::msb_order() const {
  std::vector<ExpertId> order;
  entries_.for_each([&](ExpertId id, const Entry& entry) {
    if (!entry.parts.empty()) order.push_back(id);
  });
  std::ranges::stable_sort(order, {}, [&](ExpertId id) { return worth(id, entries_.find(id)->tokens); });
  return order;
}

std::vector<ExpertId> SliceWarmup::lsb_order() const {
  std::vector<ExpertId> order;
  entries_.for_each([&](ExpertId id, const Entry& entry) {
    if (entry.parts == kBothParts) order.push_back(id);
  });
  std::ranges::stable_sort(order, {}, [&](ExpertId id) { return worth(id, entries_.find(id)->critical); });
  return order;
}

std::uint64_t SliceWarmup::worth(ExpertId id, std::uint64_t count) const {
  return rules_.random ? draw(rules_.seed, id) : count;
}

EvictionOrder::Key SliceWarmup::lsb_key(ExpertId id, const Entry& entry) const {
  return {.first = worth(id, entry.critical), .second = worth(id, entry.tokens)};
}

// An expert that no token chose is critical for none. Draws ignore shares.
bool SliceWarmup::rarely_critical(const Entry& entry) const {
  if (rules_.random) return false;
  const double share =
      entry.tokens == 0 ? 0 : static_cast<double>(entry.critical) / static_cast<double>(entry.tokens);
  return share < rules_.kappa;
}

void SliceWarmup::enter(ExpertId id, const Entry& entry) {
  if (entry.parts.empty()) return;
  ++msb_count_;
  if (entry.parts == Part::kMsb) return put(bare_msbs_, id, {.first = worth(id, entry.tokens)}, Part::kMsb);
  ++lsb_count_;
  put(lsbs_, id, lsb_key(id, entry), Part::kLsb);
  if (rarely_critical(entry)) put(rare_lsbs_, id, lsb_key(id, entry), Part::kLsb);
}

void SliceWarmup::leave(ExpertId id, const Entry& entry) {
  if (entry.parts.empty()) return;
  --msb_count_;
  take(bare_msbs_, id, Part::kMsb);
  if (entry.parts != kBothParts) return;
  --lsb_count_;
  take(lsbs_, id, Part::kLsb);
  take(rare_lsbs_, id, Part::kLsb);
}

void SliceWarmup::evict_one(const ExpertSizes& sizes) {
  const bool many_lsbs = static_cast<double>(lsb_count_) > rules_.rho * static_cast<double>(msb_count_);
  if (!rare_lsbs_.empty()) return evict_lsb(rare_lsbs_.first(), sizes);
  // The lowest draw leaves with both slices; otherwise later experts would be likelier to stay.
  const bool lowest_draw = rules_.random && !lsbs_.empty() && !bare_msbs_.empty() &&
                           draw(rules_.seed, lsbs_.first()) < draw(rules_.seed, bare_msbs_.first());
  if ((many_lsbs || lowest_draw || bare_msbs_.empty()) && !lsbs_.empty())
    return evict_lsb(lsbs_.first(), sizes);
  SLUICE_CHECK(!bare_msbs_.empty());
  const ExpertId id = bare_msbs_.first();
  Entry& entry = entries_.at(id);
  leave(id, entry);
  entry.parts = {};
  used_ -= sizes.bytes(id).msb;
  evictions_.push_back({id, Part::kMsb});
}

void SliceWarmup::evict_lsb(ExpertId id, const ExpertSizes& sizes) {
  Entry& entry = entries_.at(id);
  leave(id, entry);
  entry.parts = Part::kMsb;
  enter(id, entry);
  used_ -= sizes.bytes(id).lsb;
  evictions_.push_back({id, Part::kLsb});
}

}  // namespace sluice::experts
