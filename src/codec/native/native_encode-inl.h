// Encoding into codec `native`, written once over the lines of an instruction set.
//
// A file native_encode_ISA.cc defines what is listed here, then includes this file; all in its unnamed
// namespace and without functions of the standard library, as in native_tiers-inl.h.
//
//   Line               64 bytes in registers
//     load(p), store(p, line), filled(byte)
//     chosen(mask, a, b)     a in the places of the mask, else b
//     joined<shift>(a, b)    a | b << shift of each byte; no bit is shifted out of one
//     bit_of<from, to>(a)    bit `from` of each byte as bit `to`, which is higher; no other bit
//     low_bits(a, mask)      a & mask of each byte
//   Mask               some of 64 places: equal(line, line)
//   append(rest, exponents, line, mask)
//                      those places of `line`, which was loaded from `exponents`; returns the end. Up to 64
//                      bytes may be written
//   split_line(words, exponents, sign_mantissas)
//                      two lines of words (columns 0 to 31, 32 to 63) to a line of each plane
#pragma once

#include "codec/native/native_encode_impl.h"
#include "codec/native/tiles.h"

namespace sluice::codec {
namespace {

inline void split_lines(const std::byte* words, std::size_t lines, std::byte* exponents,
                        std::byte* sign_mantissas) {
  for (std::size_t i = 0; i < lines; ++i) {
    split_line(words + i * 2 * kTileColumns, exponents + i * kTilePlaces, sign_mantissas + i * kTilePlaces);
  }
}

// Codes a line by a table of exponents. An exponent outside the table gets code kEntries and is appended.
template <int kEntries>
struct Coder {
  explicit Coder(const std::byte* table) {
    for (int i = 0; i < kEntries; ++i) {
      exponents[i] = filled(static_cast<unsigned>(table[i]));
      codes[i] = filled(static_cast<unsigned>(i));
    }
  }
  [[gnu::always_inline]] Line operator()(const std::byte* from, std::byte*& rest) const {
    const Line line = load(from);
    Line code = none;
    // The first of equal entries must win, so it is chosen last.
    for (int i = kEntries; i-- > 0;) code = chosen(equal(line, exponents[i]), codes[i], code);
    rest = append(rest, from, line, equal(code, none));
    return code;
  }
  Line exponents[kEntries], codes[kEntries], none = filled(kEntries);
};

inline std::byte* two_bits(const std::byte* exponents, std::size_t turns, const std::byte* table,
                           std::byte* codes, std::byte* rest) {
  const Coder<3> code(table);
  for (std::size_t turn = 0; turn < turns; ++turn, exponents += 256, codes += 64) {
    Line line = code(exponents, rest);
    line = joined<2>(line, code(exponents + 64, rest));
    line = joined<4>(line, code(exponents + 128, rest));
    store(codes, joined<6>(line, code(exponents + 192, rest)));
  }
  return rest;
}

inline std::byte* three_bits(const std::byte* exponents, std::size_t turns, const std::byte* table,
                             std::byte* codes, std::byte* rest) {
  const Coder<7> code(table);
  for (std::size_t turn = 0; turn < turns; ++turn, exponents += 512, codes += 192) {
    Line lines[3];
    for (int i = 0; i < 3; ++i) {
      lines[i] = code(exponents + 128 * i, rest);
      lines[i] = joined<3>(lines[i], code(exponents + 128 * i + 64, rest));
    }
    const Line six = code(exponents + 384, rest), seven = code(exponents + 448, rest);
    store(codes, joined<6>(lines[0], low_bits(six, 3)));
    store(codes + 64, joined<6>(lines[1], low_bits(seven, 3)));
    store(codes + 128, joined<0>(joined<0>(lines[2], bit_of<2, 6>(six)), bit_of<2, 7>(seven)));
  }
  return rest;
}

}  // namespace
}  // namespace sluice::codec
