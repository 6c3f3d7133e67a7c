// Predictive cache warm-up: which slices outlive a prompt, judged by how often the prompt's tokens chose an
// expert and found it critical. SliceMoE; SPEC §4.6. cache_slice_lru.cc drives it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/cache/eviction_order.h"
#include "experts/cache/slice_rules.h"
#include "experts/cache/slices/slice_lru.h"
#include "experts/core/expert_table.h"

namespace sluice::experts {

// O(log slices) an admission or eviction. Thread-compatible.
class SliceWarmup {
 public:
  explicit SliceWarmup(const WarmupRules& rules);  // REQUIRES: valid rules

  // Starts a prompt with these slices resident, for experts that no token has chosen. REQUIRES: each
  // expert of `lsb` is in `msb`.
  void begin(std::span<const ExpertId> msb, std::span<const ExpertId> lsb, const ExpertSizes& sizes);

  // The prompt goes on after other events, which have left these slices resident. Keeps the counts. REQUIRES:
  // as begin().
  void resume(std::span<const ExpertId> msb, std::span<const ExpertId> lsb, const ExpertSizes& sizes);

  // So many more tokens chose the expert, and so many found it critical. Chunks of a prompt add up.
  void count(ExpertId id, std::uint64_t tokens, std::uint64_t critical);
  // The expert has been used at high precision: both its slices join, then slices leave while they exceed
  // `capacity` bytes; those of this expert may be among them.
  void admit(ExpertId id, const ExpertSizes& sizes, Bytes capacity);
  std::span<const Slice> evictions() const { return evictions_; }  // since forget_evictions(), in order
  void forget_evictions() { evictions_.clear(); }

  // The prompt is over: LSBs beyond the share that may outlive it leave. Returns them, ascending.
  std::vector<ExpertId> trim(const ExpertSizes& sizes);

  Parts parts(ExpertId id) const;
  // The order that slice-lru takes over: the slices that were needed most are most recent; ties: the lower id
  // is nearer to the end that leaves first.
  std::vector<ExpertId> msb_order() const;
  std::vector<ExpertId> lsb_order() const;

 private:
  struct Entry {
    std::uint64_t tokens = 0, critical = 0;
    Parts parts;
  };
  void hold(std::span<const ExpertId> msb, std::span<const ExpertId> lsb, const ExpertSizes& sizes);
  std::uint64_t worth(ExpertId id, std::uint64_t count) const;  // the count, or the draw
  EvictionOrder::Key lsb_key(ExpertId id, const Entry& entry) const;
  bool rarely_critical(const Entry& entry) const;
  void enter(ExpertId id, const Entry& entry);  // adds it to the orders that it belongs to
  void leave(ExpertId id, const Entry& entry);
  void evict_one(const ExpertSizes& sizes);
  void evict_lsb(ExpertId id, const ExpertSizes& sizes);

  WarmupRules rules_;
  ExpertTable<Entry> entries_;
  // By (critical, tokens, id); rare_lsbs_ has those below kappa.
  EvictionOrder lsbs_, rare_lsbs_;
  EvictionOrder bare_msbs_;  // MSBs without a resident LSB, by (tokens, id)
  std::uint64_t msb_count_ = 0, lsb_count_ = 0;
  Bytes used_ = 0;
  std::vector<Slice> evictions_;
};

}  // namespace sluice::experts
