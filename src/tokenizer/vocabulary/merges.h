// The merge rules of a BPE model: a pair of ids, the rank of its rule (lower ranks are applied first) and the
// joined id.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tokenizer/text/token_id.h"

namespace sluice::tokenizer {

struct Merge {
  std::uint32_t rank;
  TokenId id;  // the joined token
};

class Merges {
 public:
  void reserve(std::size_t rules);
  void put(TokenId left, TokenId right,
           Merge merge);  // a later rule for the same pair replaces the earlier one
  const Merge* find(TokenId left, TokenId right) const {
    if (slots_.empty()) return nullptr;
    const std::uint64_t key = key_of(left, right);
    for (std::size_t slot = home_of(key);; slot = (slot + 1) & (slots_.size() - 1)) {
      if (slots_[slot].key == key) return &slots_[slot].merge;
      if (slots_[slot].key == kFree) return nullptr;
    }
  }
  std::size_t size() const { return size_; }

  // Its representation: a table of a file (docs/store-format.md, section 5.2).
  struct Slot {
    std::uint64_t key = ~std::uint64_t{0};
    Merge merge{};
  };
  std::span<const Slot> slots() const { return slots_; }
  // Rebuilds it from its table. Error(kInvalid) in `where` unless every search in it ends, and every id is
  // below `end_id`.
  static Merges of_table(std::vector<Slot> slots, TokenId end_id, const std::string& where);

 private:
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};  // no key: ids are never -1

  static std::uint64_t key_of(TokenId left, TokenId right) {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) |
           static_cast<std::uint32_t>(right);
  }
  // Fibonacci hashing of both halves.
  std::size_t home_of(std::uint64_t key) const {
    key ^= key >> 32;
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15u) >> shift_);
  }
  Slot& slot_of(std::uint64_t key);
  void rehash(std::size_t slots);

  std::vector<Slot> slots_;  // size is a power of two, or 0; at most 2/3 full; linear probing
  unsigned shift_ = 64;      // 64 - log2(slots)
  std::size_t size_ = 0;
};

}  // namespace sluice::tokenizer
