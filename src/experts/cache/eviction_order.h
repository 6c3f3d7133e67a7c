// The residents of one cache in the order in which they would leave: smallest (key, id) first. LRU, FIFO, LFU
// and Belady share this order and differ in the key.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <vector>

#include "experts/cache/cache.h"
#include "experts/core/expert_table.h"

namespace sluice::experts {

// The experts of the running event wait outside the heap ("held") until release(), so that finding a victim
// never walks over them. O(log n) per operation; nothing is allocated once every expert has been seen.
class EvictionOrder {
 public:
  struct Key {
    std::uint64_t first = 0, second = 0;
    auto operator<=>(const Key&) const = default;
  };

  void release();                   // the running event is over: its experts may leave again
  void hold(ExpertId id);           // the running event uses it; does nothing if it is not resident
  void hold(ExpertId id, Key key);  // the same, with a new key
  void insert(ExpertId id, Key key, Parts parts,
              Bytes bytes);               // resident from now on (or with new parts), and held
  void remove(ExpertId id, Parts parts);  // `parts` left; removes the expert when no part is left
  // As Cache::victims. Takes whole experts, smallest first.
  void victims(Bytes need, const PinnedView& pinned, std::vector<Eviction>& out);

  // The first of the order and its size; held experts are not counted. REQUIRES: !empty().
  bool empty() const { return heap_.empty(); }
  ExpertId first() const { return heap_.front().id; }
  Parts parts(ExpertId id) const;
  Bytes bytes(ExpertId id) const;  // 0 if not resident

 private:
  static constexpr std::uint32_t kAbsent = 0, kHeld = std::numeric_limits<std::uint32_t>::max();
  struct Slot {
    Key key;
    Bytes bytes = 0;
    std::uint32_t place = kAbsent;  // kHeld, or 1 + position in heap_
    Parts parts;
  };
  struct Entry {
    Key key;
    ExpertId id;
    auto operator<=>(const Entry&) const = default;
  };

  void push(const Entry& entry);
  void take_out(std::uint32_t position);
  void sift_up(std::uint32_t position, const Entry& entry);
  void sift_down(std::uint32_t position, const Entry& entry);
  void put(std::uint32_t position, const Entry& entry);

  ExpertTable<Slot> slots_;
  std::vector<Entry> heap_;     // binary, smallest first
  std::vector<ExpertId> held_;  // may name experts that have left since
  std::vector<Entry> aside_;    // scratch of victims()
  Bytes heap_bytes_ = 0;
};

}  // namespace sluice::experts
