#include "experts/cache/eviction_order.h"

#include "base/error.h"

namespace sluice::experts {

void EvictionOrder::release() {
  for (ExpertId id : held_) {
    const Slot& slot = slots_.at(id);
    if (slot.place == kHeld) push({slot.key, id});
  }
  held_.clear();
}

void EvictionOrder::hold(ExpertId id) {
  Slot* slot = slots_.find(id);
  if (slot == nullptr || slot->place == kAbsent || slot->place == kHeld) return;
  take_out(slot->place - 1);
  slot->place = kHeld;
  held_.push_back(id);
}

void EvictionOrder::hold(ExpertId id, Key key) {
  hold(id);
  if (Slot* slot = slots_.find(id); slot != nullptr && slot->place == kHeld) slot->key = key;
}

void EvictionOrder::insert(ExpertId id, Key key, Parts parts, Bytes bytes) {
  hold(id);
  Slot& slot = slots_.at(id);
  if (slot.place == kAbsent) held_.push_back(id);
  slot = {.key = key, .bytes = bytes, .place = kHeld, .parts = parts};
}

void EvictionOrder::remove(ExpertId id, Parts parts) {
  Slot& slot = slots_.at(id);
  SLUICE_CHECK(slot.place != kAbsent && slot.parts == parts);
  if (slot.place != kHeld) take_out(slot.place - 1);
  slot = {};
}

void EvictionOrder::victims(Bytes need, const PinnedView& pinned, std::vector<Eviction>& out) {
  if (heap_bytes_ < need) return;
  const std::size_t before = out.size();
  Bytes freed = 0;
  aside_.clear();
  while (freed < need && !heap_.empty()) {
    const Entry entry = heap_.front();
    const Slot& slot = slots_.at(entry.id);
    if (!pinned.pinned(entry.id)) {
      out.push_back({entry.id, slot.parts});
      freed += slot.bytes;
      if (freed >= need) break;  // the last one may stay in the heap until it is removed
    }
    aside_.push_back(entry);
    take_out(0);
  }
  if (freed < need) out.resize(before);
  for (const Entry& entry : aside_) push(entry);
}

Parts EvictionOrder::parts(ExpertId id) const {
  const Slot* slot = slots_.find(id);
  return slot == nullptr ? Parts() : slot->parts;
}

Bytes EvictionOrder::bytes(ExpertId id) const {
  const Slot* slot = slots_.find(id);
  return slot == nullptr ? 0 : slot->bytes;
}

void EvictionOrder::push(const Entry& entry) {
  heap_bytes_ += slots_.at(entry.id).bytes;
  heap_.push_back(entry);
  sift_up(static_cast<std::uint32_t>(heap_.size() - 1), entry);
}

void EvictionOrder::take_out(std::uint32_t position) {
  heap_bytes_ -= slots_.at(heap_[position].id).bytes;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (position == heap_.size()) return;
  if (position > 0 && last < heap_[(position - 1) / 2]) {
    sift_up(position, last);
  } else {
    sift_down(position, last);
  }
}

void EvictionOrder::sift_up(std::uint32_t position, const Entry& entry) {
  while (position > 0 && entry < heap_[(position - 1) / 2]) {
    put(position, heap_[(position - 1) / 2]);
    position = (position - 1) / 2;
  }
  put(position, entry);
}

void EvictionOrder::sift_down(std::uint32_t position, const Entry& entry) {
  for (std::uint32_t child; (child = 2 * position + 1) < heap_.size(); position = child) {
    if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child]) ++child;
    if (!(heap_[child] < entry)) break;
    put(position, heap_[child]);
  }
  put(position, entry);
}

void EvictionOrder::put(std::uint32_t position, const Entry& entry) {
  heap_[position] = entry;
  slots_.at(entry.id).place = position + 1;
}

}  // namespace sluice::experts
