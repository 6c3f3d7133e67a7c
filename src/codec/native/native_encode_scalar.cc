// Codes place after place, as docs/store-format.md, section 4.1, describes it: the oracle of the vector
// files.
#include <array>
#include <cstdint>

#include "codec/native/native_encode_impl.h"
#include "codec/native/tiles.h"

namespace sluice::codec {
namespace {

constexpr std::size_t kRun = 8;  // neighbours in a row that are neighbours in a line

void split_lines(const std::byte* words, std::size_t lines, std::byte* exponents, std::byte* sign_mantissas) {
  for (std::size_t line = 0; line < lines; ++line) {
    for (std::size_t first = 0; first < kTileColumns; first += kRun) {
      const std::size_t place = line * kTilePlaces + place_of_column(first);
      for (std::size_t i = 0; i < kRun; ++i, words += 2) {
        const auto low = static_cast<unsigned>(words[0]), high = static_cast<unsigned>(words[1]);
        exponents[place + i] = static_cast<std::byte>(high << 1 | low >> 7);
        sign_mantissas[place + i] = static_cast<std::byte>((high & 0x80) | (low & 0x7f));
      }
    }
  }
}

// Codes by a table of exponents. An exponent outside the table gets code `entries` and is appended.
class Coder {
 public:
  Coder(const std::byte* table, unsigned entries) : none_(static_cast<std::uint8_t>(entries)) {
    codes_.fill(none_);
    // The first of equal entries must win, so it is written last.
    for (std::uint8_t i = none_; i-- > 0;) codes_[static_cast<std::size_t>(table[i])] = i;
  }
  unsigned operator()(std::byte exponent, std::byte*& rest) const {
    const std::uint8_t code = codes_[static_cast<std::size_t>(exponent)];
    *rest = exponent;  // written always and kept only if needed: no branch to predict
    rest += code == none_;
    return code;
  }

 private:
  std::array<std::uint8_t, 256> codes_;
  std::uint8_t none_;
};

std::byte* two_bits(const std::byte* exponents, std::size_t turns, const std::byte* table, std::byte* codes,
                    std::byte* rest) {
  const Coder code(table, 3);
  for (std::size_t turn = 0; turn < turns; ++turn, exponents += 256, codes += 64) {
    unsigned bytes[64] = {};
    for (std::size_t i = 0; i < 256; ++i) bytes[i % 64] |= code(exponents[i], rest) << 2 * (i / 64);
    for (std::size_t j = 0; j < 64; ++j) codes[j] = static_cast<std::byte>(bytes[j]);
  }
  return rest;
}

std::byte* three_bits(const std::byte* exponents, std::size_t turns, const std::byte* table, std::byte* codes,
                      std::byte* rest) {
  const Coder coder(table, 7);
  for (std::size_t turn = 0; turn < turns; ++turn, exponents += 512, codes += 192) {
    unsigned bytes[3][64] = {};
    for (std::size_t i = 0; i < 512; ++i) {
      const unsigned code = coder(exponents[i], rest);
      const std::size_t s = i / 64, j = i % 64;
      if (s < 6) {
        bytes[s / 2][j] |= code << s % 2 * 3;
      } else {
        bytes[s - 6][j] |= (code & 3) << 6;
        bytes[2][j] |= code >> 2 << s;
      }
    }
    for (std::size_t i = 0; i < 192; ++i) codes[i] = static_cast<std::byte>(bytes[i / 64][i % 64]);
  }
  return rest;
}

}  // namespace

constinit const NativeEncodeKernels kNativeEncodeScalar = {split_lines, two_bits, three_bits};

}  // namespace sluice::codec
