// Reads a group of a packed matrix, eight rows, block after block (docs/store-format.md, section 4.1).
//
// A lane has the places of a quarter of a row: lane 4r + j those of columns 8j … 8j+7 and 32+8j …
// 32+8j+7 of row r, which are four lanes of the sum of each half. So places follow each other from lane to
// lane, as codes of tier 2 do in their list. Lists are decoded ahead, some hundred codes at a time, into
// rings in memory that the warp shares. Nothing outside the chunk is read, whatever it says.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gpu/products/packed_chunk.h"
#include "kernels/gpu/warp.h"

namespace sluice::kernels::gpu {

// Where the parts of a coded group are. All of it is the same for all lanes.
struct PackedLists {
  const std::byte* tiers;
  const std::byte *tier1, *tier2, *tier3, *literals;
  std::uint32_t codes2, codes3, literal_count;
};

// kAligned: planes and chunks begin at multiples of 16.
template <class Warp, bool kAligned>
class PackedGroupReader {
 public:
  using Word = typename Warp::Word;
  using Mask = typename Warp::Mask;
  using Bytes16 = typename Warp::template Words<4>;

  static constexpr std::uint32_t kRing = 1024;  // exponents of a tier that are decoded and not used, at most
  static constexpr std::uint32_t kShared = 2 * kRing;

  // `group`: of the chunk. `sign_mantissas`: of the group.
  SLUICE_GPU PackedGroupReader(const Warp& warp, const PackedChunk& chunk, std::uint32_t group,
                               std::uint32_t blocks, const std::byte* sign_mantissas)
      : warp_(warp), blocks_(blocks), coded_(chunk.coded != 0), sign_mantissas_(sign_mantissas) {
    const Word lane = warp.lane();
    if (!coded_) {
      exponents_ = chunk.bytes + std::uint64_t{group} * blocks * kPlaces;
      sound_ = std::uint64_t{group + 1} * blocks * kPlaces <= chunk.size;
      next_at_ = lane * Word(16);
    } else {
      sound_ = find(chunk, group);
      exponents_ = lists_.tier1;
      shift_ = lane / Word(4) % Word(4) * Word(2);
      next_at_ = lane / Word(16) * Word(64) + lane % Word(4) * Word(16);
    }
    if (sound_) ask_for(0);
  }

  // Exponents and sign+mantissas of the next block, places 16j … 16j+15 of the lane's row. False: damaged.
  SLUICE_GPU bool next(Bytes16& exponents, Bytes16& sign_mantissas) {
    if (!sound_) return false;
    exponents = next_exponents_;
    sign_mantissas = next_sign_mantissas_;
    ++block_;
    if (block_ < blocks_) ask_for(block_);
    if (coded_) sound_ = decode(exponents);
    return sound_;
  }

  // Behind the last block: whether every list was used up.
  SLUICE_GPU bool is_sound() const {
    return sound_ && (!coded_ || (used2_ == lists_.codes2 && used3_ == lists_.codes3 &&
                                  used_literals_ == lists_.literal_count));
  }

 private:
  static constexpr std::uint32_t kPlaces = 512;  // places of a block

  SLUICE_GPU std::uint32_t u32(const std::byte* p) const {
    std::uint32_t value = 0;
    for (std::uint32_t i = 0; i < 4; ++i) value |= std::to_integer<std::uint32_t>(p[i]) << 8 * i;
    return value;
  }

  // What NativeChunk checks, as far as this group can be wrong.
  SLUICE_GPU bool find(const PackedChunk& chunk, std::uint32_t group) {
    const std::uint64_t groups = chunk.groups, first_table = 12 * groups + 8;
    if (first_table > chunk.size) return false;
    const std::uint32_t tables = u32(chunk.bytes + first_table - 4);
    if (tables == 0 || tables > 256) return false;
    const std::uint64_t tier1 = (first_table + 13 * std::uint64_t{tables} + 63) / 64 * 64,
                        lists_begin = tier1 + std::uint64_t{128} * blocks_ * groups;
    if (lists_begin > chunk.size) return false;
    const std::byte* const entry = chunk.bytes + std::uint64_t{12} * group;
    const std::uint32_t lists = u32(entry), codes2 = u32(entry + 4), last = u32(entry + 8);
    const std::uint32_t codes3 = last & 0xffffff, table = last >> 24;
    const std::uint64_t lists_end = u32(entry + 12);
    if (table >= tables || codes2 > std::uint64_t{blocks_} * kPlaces || codes3 > codes2) return false;
    if (lists < lists_begin || lists_end > chunk.size) return false;
    const std::uint64_t tier3 = std::uint64_t{lists} + (codes2 + 3) / 4,
                        literals = tier3 + std::uint64_t{(codes3 + 7) / 8} * 3;
    if (literals > lists_end || lists_end - literals > codes3) return false;
    lists_.tiers = chunk.bytes + first_table + 13 * table;
    lists_.tier1 = chunk.bytes + tier1 + std::uint64_t{128} * blocks_ * group;
    lists_.tier2 = chunk.bytes + lists;
    lists_.tier3 = chunk.bytes + tier3;
    lists_.literals = chunk.bytes + literals;
    lists_.codes2 = codes2;
    lists_.codes3 = codes3;
    lists_.literal_count = static_cast<std::uint32_t>(lists_end - literals);
    const Word no_exponent(255);
    const auto in_table = warp_.lane() < Word(13);
    const Word tier = warp_.load_byte_if(in_table, lists_.tiers, warp_.lane(), Word(0));
    if (warp_.ballot(tier == no_exponent) != 0) return false;
    tier1_ = table_at(0);
    tier2_ = table_at(3);
    tier3_low_ = table_at(6);
    tier3_high_ = table_at(10);
    return true;
  }
  // Four bytes of the tables, as far as they have that many.
  SLUICE_GPU Word table_at(std::uint32_t at) const {
    std::uint32_t word = 0;
    for (std::uint32_t i = 0; i < 4 && at + i < 13; ++i)
      word |= std::to_integer<std::uint32_t>(lists_.tiers[at + i]) << 8 * i;
    return Word(word);
  }

  SLUICE_GPU Bytes16 load16(const std::byte* p, Word at) const {
    if constexpr (kAligned) {
      return warp_.template load_words<4>(p, at);
    } else {
      Bytes16 bytes;
      for (std::uint32_t i = 0; i < 4; ++i) {
        bytes.of[i] = Word(0);
        for (std::uint32_t b = 0; b < 4; ++b)
          bytes.of[i] = bytes.of[i] | warp_.load_byte(p, at + Word(4 * i + b)) << Word(8 * b);
      }
      return bytes;
    }
  }
  SLUICE_GPU void ask_for(std::uint32_t block) {
    next_sign_mantissas_ = load16(sign_mantissas_ + std::size_t{block} * kPlaces, warp_.lane() * Word(16));
    next_exponents_ = load16(exponents_ + std::size_t{block} * (coded_ ? kPlaces / 4 : kPlaces), next_at_);
  }

  // Codes of tier 1 become exponents.
  SLUICE_GPU bool decode(Bytes16& bytes) {
    Word escapes[4], count(0);
    SLUICE_GPU_UNROLL
    for (int i = 0; i < 4; ++i) {
      const Word codes = bytes.of[i] >> shift_ & Word(0x03030303u);
      bytes.of[i] = codes;
      escapes[i] = codes & codes >> Word(1) & Word(0x01010101u);
      count = count + escapes[i];
    }
    // Bytes of `count` are at most 4.
    count = count * Word(0x01010101u) >> Word(24);
    Word before = count;  // becomes the sum of this lane and all before it
    const Word lane = warp_.lane();
    SLUICE_GPU_UNROLL
    for (std::uint32_t step = 1; step < 32; step *= 2)
      before = before + warp_.select(lane >= Word(step), warp_.shuffle(before, lane - Word(step)), Word(0));
    const std::uint32_t all = warp_.get(before, 31);
    if (all > lists_.codes2 - used2_) return false;
    while (made2_ < used2_ + all)
      if (!make2()) return false;
    Word at = before - count + Word(used2_);
    used2_ += all;
    SLUICE_GPU_UNROLL
    for (int i = 0; i < 4; ++i) {
      const Word ranks = escapes[i] * Word(0x01010100u);  // how many escapes are before each byte
      const Word low = warp_.load(ring2(), at / Word(4) % Word(kRing / 4)),
                 high = warp_.load(ring2(), (at / Word(4) + Word(1)) % Word(kRing / 4));
      const Word of_tier2 = warp_.permute(low, high, Word(0x3210u) + at % Word(4) * Word(0x1111u));
      // Byte 0 … 2 of the table, or 4 + rank of those of tier 2.
      const Word choice = bytes.of[i] + escapes[i] + (ranks & escapes[i] * Word(255));
      const Word nibbles = choice | choice >> Word(4);
      bytes.of[i] = warp_.permute(tier1_, of_tier2, warp_.permute(nibbles, nibbles, Word(0x0020u)));
      at = at + (escapes[i] * Word(0x01010101u) >> Word(24));
    }
    return true;
  }

  SLUICE_GPU std::uint32_t* ring2() const { return reinterpret_cast<std::uint32_t*>(warp_.shared()); }
  SLUICE_GPU std::byte* ring2_bytes() const { return warp_.shared(); }
  SLUICE_GPU std::byte* ring3_bytes() const { return warp_.shared() + kRing; }
  // Which of the lanes in `ballot` this one is.
  SLUICE_GPU Word rank_in(std::uint32_t ballot) const {
    return warp_.count(Word(ballot) & ((Word(1) << warp_.lane()) - Word(1)));
  }

  // Codes of a list in columns, as many bytes for each lane in two halves: byte 32h + lane of m.
  struct Column {
    std::uint32_t n, m;
    Word bits[2];  // this lane's bytes
  };
  // Code s·m + 32h + lane of a list; which of them there are.
  SLUICE_GPU Word index_of(const Column& column, std::uint32_t s, std::uint32_t h) const {
    return Word(s * column.m + 32 * h) + warp_.lane();
  }
  SLUICE_GPU Mask is_there(const Column& column, std::uint32_t s, std::uint32_t h) const {
    return warp_.lane() + Word(32 * h) < Word(column.m) && index_of(column, s, h) < Word(column.n);
  }
  static SLUICE_GPU Word code_of_tier2(const Column& column, std::uint32_t s, std::uint32_t h) {
    return column.bits[h] >> Word(2 * s) & Word(3);
  }
  // The bits are those of three bytes, one of each line.
  static SLUICE_GPU Word code_of_tier3(const Column& column, std::uint32_t s, std::uint32_t h) {
    const Word bits = column.bits[h];
    if (s < 6) return bits >> Word(s / 2 * 8 + s % 2 * 3) & Word(7);
    return (bits >> Word(s == 6 ? 6 : 14) & Word(3)) | (bits >> Word(16 + s) & Word(1)) << Word(2);
  }

  // Decodes the next 256 codes of tier 2.
  SLUICE_GPU bool make2() {
    Column column;
    const std::uint32_t first = made2_;
    column.n = lists_.codes2 - first < 256 ? lists_.codes2 - first : 256;
    column.m = (column.n + 3) / 4;
    warp_.sync();  // what is overwritten has been read
    SLUICE_GPU_UNROLL
    for (std::uint32_t h = 0; h < 2; ++h) {
      const Word j = warp_.lane() + Word(32 * h);
      column.bits[h] = warp_.load_byte_if(j < Word(column.m), lists_.tier2 + first / 4, j, Word(0));
    }
    std::uint32_t all = 0;
    SLUICE_GPU_LOOP
    for (std::uint32_t s = 0; s < 4; ++s) {
      SLUICE_GPU_UNROLL
      for (std::uint32_t h = 0; h < 2; ++h)
        all += warp_.ones(warp_.ballot(is_there(column, s, h) && code_of_tier2(column, s, h) == Word(3)));
    }
    if (all > lists_.codes3 - used3_) return false;
    while (made3_ < used3_ + all)
      if (!make3()) return false;
    SLUICE_GPU_LOOP
    for (std::uint32_t s = 0; s < 4; ++s) {
      SLUICE_GPU_UNROLL
      for (std::uint32_t h = 0; h < 2; ++h) {
        const auto there = is_there(column, s, h);
        const Word code = code_of_tier2(column, s, h);
        const auto escapes_here = there && code == Word(3);
        const std::uint32_t escapes = warp_.ballot(escapes_here);
        const Word below = warp_.load_byte_if(escapes_here, ring3_bytes(),
                                              (Word(used3_) + rank_in(escapes)) % Word(kRing), Word(0));
        warp_.store_byte_if(there, ring2_bytes(), (Word(first) + index_of(column, s, h)) % Word(kRing),
                            warp_.select(escapes_here, below, warp_.permute(tier2_, Word(0), code)));
        used3_ += warp_.ones(escapes);
      }
    }
    made2_ += column.n;
    warp_.sync();
    return true;
  }

  // Decodes the next 512 codes of tier 3.
  SLUICE_GPU bool make3() {
    Column column;
    const std::uint32_t first = made3_;
    column.n = lists_.codes3 - first < 512 ? lists_.codes3 - first : 512;
    column.m = (column.n + 7) / 8;
    const std::byte* const lines = lists_.tier3 + first / 8 * 3;
    SLUICE_GPU_UNROLL
    for (std::uint32_t h = 0; h < 2; ++h) {
      const Word j = warp_.lane() + Word(32 * h);
      column.bits[h] = Word(0);
      SLUICE_GPU_UNROLL
      for (std::uint32_t line = 0; line < 3; ++line)
        column.bits[h] =
            column.bits[h] | warp_.load_byte_if(j < Word(column.m), lines + line * column.m, j, Word(0))
                                 << Word(8 * line);
    }
    SLUICE_GPU_LOOP
    for (std::uint32_t k = 0; k < 16; ++k) {
      const std::uint32_t s = k / 2, h = k % 2;
      Column one = column;
      if (h != 0) one.bits[0] = column.bits[1];
      const auto there = is_there(column, s, h);
      const Word code = code_of_tier3(one, s, 0);
      const auto literal = there && code == Word(7);
      const std::uint32_t literals = warp_.ballot(literal);
      Word exponent = warp_.permute(tier3_low_, tier3_high_, code);
      if (literals != 0) {
        const std::uint32_t count = warp_.ones(literals);
        if (count > lists_.literal_count - used_literals_) return false;
        exponent = warp_.select(
            literal,
            warp_.load_byte_if(literal, lists_.literals, Word(used_literals_) + rank_in(literals), Word(0)),
            exponent);
        used_literals_ += count;
      }
      warp_.store_byte_if(there, ring3_bytes(), (Word(first) + index_of(column, s, h)) % Word(kRing),
                          exponent);
    }
    made3_ += column.n;
    warp_.sync();
    return true;
  }

  const Warp& warp_;
  const std::uint32_t blocks_;
  const bool coded_;
  const std::byte* const sign_mantissas_;
  const std::byte* exponents_ = nullptr;  // or codes of tier 1
  PackedLists lists_{};
  Word tier1_{0}, tier2_{0}, tier3_low_{0}, tier3_high_{0};  // tables
  Word shift_{0}, next_at_{0};
  Bytes16 next_exponents_{}, next_sign_mantissas_{};
  std::uint32_t block_ = 0, made2_ = 0, used2_ = 0, made3_ = 0, used3_ = 0, used_literals_ = 0;
  bool sound_ = false;
};

}  // namespace sluice::kernels::gpu
