// The lines of a packed group as words, in registers. Include one of codec/native/native_codes_*-inl.h
// before this file.
//
// WAITING FOR MEMORY takes most of the time of one token. While a group is computed with, the kernel asks for
// lines further on, a few in each block. A class (NextGroup, SomeBlocksOn) decides which lines, because CPUs
// differ.
#pragma once

#include "codec/native/native_tiers-inl.h"
#include "kernels/products/packed/packed_impl.h"

namespace sluice::kernels {
namespace {

using codec::kTileColumns;
using codec::kTilePlaces;
using codec::kTileRows;

// Asks for memory without reading it, even beyond ours.
template <int kCache>
[[gnu::always_inline]] inline void fetch(const std::byte* line) {
  __builtin_prefetch(line, 0, kCache);
}

// Asks for a group further on, block by block of this group, from five places at once (four quarters of the
// sign+mantissa plane, and tier 1), into the L2 cache: a core of Intel reads from that many places half again
// as fast as from one (docs/performance.md).
class NextGroup {
 public:
  explicit NextGroup(const PackedGroup& a)
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
      fetch<2>(codes_ + 2 * 64 * block);
      fetch<2>(codes_ + 2 * 64 * block + 64);
      for (const std::byte* end = lists_ + lists_each_; lists_ < end && lists_ < lists_end_; lists_ += 64)
        fetch<2>(lists_);
    } else {
      quarters(exponents_, block);
    }
  }

 private:
  [[gnu::always_inline]] void quarters(const std::byte* plane, std::uint64_t block) const {
    for (std::size_t i = 0; i < 4; ++i) {
      fetch<2>(plane + i * quarter_ + 2 * 64 * block);
      fetch<2>(plane + i * quarter_ + 2 * 64 * block + 64);
    }
  }

  const std::byte* plane_;
  std::size_t quarter_;
  const std::byte *codes_, *exponents_, *lists_, *lists_end_;
  std::size_t lists_each_;
};

// Asks for the lines needed twelve blocks later, even in the next group, into the L1 cache; meanwhile for the
// lists of the group further on. On Zen 5 a sixth faster than NextGroup (8 blocks: 3 % slower; 24: 8 %).
class SomeBlocksOn {
 public:
  explicit SomeBlocksOn(const PackedGroup& a)
      : plane_(a.sign_mantissas + kBlocks * kTilePlaces),
        codes_(a.coded ? a.group.tier1 + kBlocks * kTilePlaces / 4 : nullptr),
        exponents_(!a.coded ? a.exponents + kBlocks * kTilePlaces : nullptr),
        lists_(a.next_lists),
        lists_end_(a.next_lists + a.next_lists_bytes),
        lists_each_((a.next_lists_bytes / 64 / a.blocks + 1) * 64) {}

  [[gnu::always_inline]] void block(std::uint64_t block) {
    lines<kTilePlaces>(plane_, block);
    if (codes_ != nullptr) {
      lines<kTilePlaces / 4>(codes_, block);
      for (const std::byte* end = lists_ + lists_each_; lists_ < end && lists_ < lists_end_; lists_ += 64)
        fetch<3>(lists_);
    } else {
      lines<kTilePlaces>(exponents_, block);
    }
  }

 private:
  static constexpr std::uint64_t kBlocks = 12;
  template <std::size_t kBytes>
  [[gnu::always_inline]] static void lines(const std::byte* first, std::uint64_t block) {
    for (std::size_t at = 0; at < kBytes; at += 64) fetch<3>(first + kBytes * block + at);
  }

  const std::byte *plane_, *codes_, *exponents_, *lists_, *lists_end_;
  std::size_t lists_each_;
};

// Calls sink(block, TileRow, the line's columns 0 to 31 as words, and 32 to 63) for lines of exponents, and
// asks for lines further on.
template <class Ahead, class Sink>
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

// Visits all lines of a group, in order. False if the group is damaged.
template <class Ahead, class Sink>
[[gnu::always_inline]] inline bool for_each_word_line(const PackedGroup& a, const Sink& sink) {
  const WordLines<Ahead, Sink> line(a, sink);
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
