// The lines of a packed group as words, in registers. Include one of codec/native_codes_*-inl.h before this
// file.
//
// WAITING FOR MEMORY is most of the time of one token. While a group is computed with, the lines of the next
// one are asked for, a few in each block and from five places at once (four quarters of the sign+mantissa
// plane, and tier 1): a core reads from as many places half as fast again as from one (docs/performance.md).
#pragma once

#include "codec/native_tiers-inl.h"
#include "kernels/packed_impl.h"

namespace sluice::kernels {
namespace {

using codec::kTileColumns;
using codec::kTilePlaces;
using codec::kTileRows;

// Asks for a group further on, block by block of this one.
class Ahead {
 public:
  explicit Ahead(const PackedGroup& a)
      : plane_(a.sign_mantissas + a.ahead * a.blocks * kTilePlaces),
        quarter_(a.blocks * kTilePlaces / 4),
        codes_(a.coded ? a.group.tier1 + a.ahead * a.blocks * kTilePlaces / 4 : nullptr),
        exponents_(!a.coded ? a.exponents + a.ahead * a.blocks * kTilePlaces : nullptr),
        lists_(a.next_lists),
        lists_end_(a.next_lists + a.next_lists_bytes),
        lists_each_((a.next_lists_bytes / 64 / a.blocks + 1) * 64) {}

  [[gnu::always_inline]] void block(std::uint64_t block) {
    quarters(plane_, block);
    if (codes_ != nullptr) {
      fetch(codes_ + 2 * 64 * block);
      fetch(codes_ + 2 * 64 * block + 64);
      for (const std::byte* end = lists_ + lists_each_; lists_ < end && lists_ < lists_end_; lists_ += 64)
        fetch(lists_);
    } else {
      quarters(exponents_, block);
    }
  }

 private:
  [[gnu::always_inline]] void quarters(const std::byte* plane, std::uint64_t block) const {
    for (std::size_t i = 0; i < 4; ++i) {
      fetch(plane + i * quarter_ + 2 * 64 * block);
      fetch(plane + i * quarter_ + 2 * 64 * block + 64);
    }
  }
  // Into the L2 cache. What is no memory of ours is not read.
  [[gnu::always_inline]] static void fetch(const std::byte* line) { __builtin_prefetch(line, 0, 2); }

  const std::byte* plane_;
  std::size_t quarter_;
  const std::byte *codes_, *exponents_, *lists_, *lists_end_;
  std::size_t lists_each_;
};

// Calls sink(block, TileRow, the line's columns 0 to 31 as words, and 32 to 63) for lines of exponents, and
// asks for a group further on.
template <class Sink>
class WordLines {
 public:
  WordLines(const PackedGroup& group, const Sink& sink)
      : plane_(group.sign_mantissas), ahead_(group), sink_(sink) {}

  template <int kRow>
  [[gnu::always_inline]] void operator()(std::uint64_t block, codec::TileRow<kRow> row,
                                         codec::Line exponents) const {
    if constexpr (kRow == 0) ahead_.block(block);
    codec::Line low, high;
    codec::words_of(exponents, codec::load(plane_ + block * kTilePlaces + kRow * kTileColumns), low, high);
    sink_(block, row, low.v, high.v);
  }

 private:
  const std::byte* plane_;
  mutable Ahead ahead_;
  const Sink& sink_;
};

// All lines of a group, in order. False if it is damaged.
template <class Sink>
[[gnu::always_inline]] inline bool for_each_word_line(const PackedGroup& a, const Sink& sink) {
  const WordLines line(a, sink);
  if (a.coded) return codec::for_each_line<codec::Form::kRotated>(a.group, a.scratch, line);
  for (std::uint64_t block = 0; block < a.blocks; ++block) {
    codec::unrolled<0, kTileRows>([&]<int kRow>() __attribute__((always_inline)) {
      const std::byte* const p = a.exponents + block * kTilePlaces + kRow * kTileColumns;
      line(block, codec::TileRow<kRow>(), codec::rotated(codec::load(p)));
    });
  }
  return true;
}

}  // namespace
}  // namespace sluice::kernels
