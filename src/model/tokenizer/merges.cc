#include "model/tokenizer/merges.h"

#include <algorithm>
#include <bit>

namespace sluice::model {

void Merges::reserve(std::size_t rules) {
  const std::size_t slots = std::bit_ceil(std::max<std::size_t>(rules + rules / 2 + 1, 16));
  if (slots > slots_.size()) rehash(slots);
}

void Merges::put(TokenId left, TokenId right, Merge merge) {
  if ((size_ + 1) * 3 > slots_.size() * 2) rehash(std::max<std::size_t>(slots_.size() * 2, 16));
  const std::uint64_t key = key_of(left, right);
  Slot& slot = slot_of(key);
  if (slot.key == kFree) ++size_;
  slot = {key, merge};
}

Merges::Slot& Merges::slot_of(std::uint64_t key) {
  std::size_t slot = home_of(key);
  while (slots_[slot].key != key && slots_[slot].key != kFree) slot = (slot + 1) & (slots_.size() - 1);
  return slots_[slot];
}

void Merges::rehash(std::size_t slots) {
  std::vector<Slot> old(slots);
  old.swap(slots_);
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(slots));
  for (const Slot& slot : old) {
    if (slot.key != kFree) slot_of(slot.key) = slot;
  }
}

}  // namespace sluice::model
