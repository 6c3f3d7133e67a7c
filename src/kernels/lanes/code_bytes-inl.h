// The codes of 32 columns of a row, a byte each, and the numbers that they stand for. Besides the Vec, a
// code_bytes_ISA-inl.h offers CodeBytes with
//   load_codes(p)          from 32 bytes
//   load_nibbles(p)        from 16 bytes: first their lower halves, then their upper ones
//   load_nibble_pairs(p)   from 16 bytes: both halves of a byte side by side, the lower one first
//   spread_bits(word)      all ones where a bit is set
//   keep_bits either minus shift_left shift_right   of bytes; shifts bring in bits of other codes
//   numbers_times_2_24(a)  Columns: signed codes times 2^24
//   numbers_of(a, table)   Columns: what codes below 16 stand for
// and half_at(p), a binary16; two_halves(a, b), a Vec of a in lanes 0 … 7 and b in the others; of_bytes(low,
// high), a Vec of 16 signed bytes; and sizes of register tiles: kBlockRows for one token, kBlockTileRows ×
// kBlockTileTokens for several.
#pragma once

#include <cstdint>

namespace sluice::kernels {
namespace {

// The numbers of 32 columns in the order of the sums of matmul.h.
struct Columns {
  Vec even, odd;
};

// The numbers that codes of 4 bits stand for: any with the eight bits of precision of BF16. Their words are
// there in two tables of bytes, too.
struct alignas(64) NibbleTable {
  float values[16];
  std::uint8_t low[16], high[16];
};

template <class... Numbers>
constexpr NibbleTable nibble_table(Numbers... numbers) {
  static_assert(sizeof...(numbers) == 16);
  NibbleTable table{{static_cast<float>(numbers)...}, {}, {}};
  for (int i = 0; i < 16; ++i) {
    const auto word = __builtin_bit_cast(std::uint32_t, table.values[i]) >> 16;
    table.low[i] = static_cast<std::uint8_t>(word & 255);
    table.high[i] = static_cast<std::uint8_t>(word >> 8);
  }
  return table;
}

}  // namespace
}  // namespace sluice::kernels
