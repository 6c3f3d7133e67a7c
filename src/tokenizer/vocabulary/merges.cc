#include "tokenizer/vocabulary/merges.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"

namespace sluice::tokenizer {

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

Merges Merges::of_table(std::vector<Slot> slots, TokenId end_id, const std::string& where) {
  const auto check = [&](bool fits, std::string_view expected, std::size_t found) {
    if (fits) return;
    throw Error(ErrorKind::kInvalid, "not a table of merge rules")
        .in(where)
        .expected(expected)
        .found(fmt::format("{}", found));
  };
  check(slots.empty() || (std::has_single_bit(slots.size()) && slots.size() > 1), "a power of two slots",
        slots.size());
  Merges merges;
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    if (slots[slot].key == kFree) continue;
    check(slots[slot].merge.id >= 0 && slots[slot].merge.id < end_id, "ids of tokens", slot);
    ++merges.size_;
  }
  check(merges.size_ * 3 <= slots.size() * 2, "at most two thirds of the slots in use", merges.size_);
  if (!slots.empty()) merges.shift_ = 64 - static_cast<unsigned>(std::countr_zero(slots.size()));
  merges.slots_ = std::move(slots);
  return merges;
}

void Merges::rehash(std::size_t slots) {
  std::vector<Slot> old(slots);
  old.swap(slots_);
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(slots));
  for (const Slot& slot : old) {
    if (slot.key != kFree) slot_of(slot.key) = slot;
  }
}

}  // namespace sluice::tokenizer
