#include "codec/slices/slice_cells.h"

#include <cstring>
#include <string>

#include "base/error.h"

namespace sluice::codec {
namespace {

constexpr std::size_t kColumns = 4;  // neighbouring columns in the bytes of a lane

// Writes the bytes of the lines from line `first` on, in the order of columns: 4 to a line.
void put_lines(const std::uint8_t* bytes, std::size_t lines, std::size_t row, std::byte* cell) {
  for (std::size_t a = 0; a < lines; ++a)
    std::memcpy(cell + a * kLineBytes + kColumns * row, bytes + kColumns * a, kColumns);
}
void get_lines(const std::byte* cell, std::size_t lines, std::size_t row, std::uint8_t* bytes) {
  for (std::size_t a = 0; a < lines; ++a)
    std::memcpy(bytes + kColumns * a, cell + a * kLineBytes + kColumns * row, kColumns);
}

}  // namespace

void put_codes(const std::uint8_t* codes, unsigned bits, std::size_t row, std::byte* cell) {
  std::uint8_t bytes[16];
  switch (bits) {
    case 8:
      return put_lines(codes, 8, row, cell);
    case 4:
      for (std::size_t j = 0; j < 16; ++j)
        bytes[j] = static_cast<std::uint8_t>(codes[j] | codes[j + 16] << 4);
      return put_lines(bytes, 4, row, cell);
    case 3:
    case 2:
      for (std::size_t j = 0; j < 8; ++j)
        bytes[j] = static_cast<std::uint8_t>((codes[j] & 3) | (codes[j + 8] & 3) << 2 |
                                             (codes[j + 16] & 3) << 4 | (codes[j + 24] & 3) << 6);
      put_lines(bytes, 2, row, cell);
      if (bits == 2) return;
      for (std::size_t j = 0; j < 4; ++j) {
        unsigned top = 0;
        for (std::size_t s = 0; s < 8; ++s) top |= static_cast<unsigned>(codes[4 * s + j] >> 2) << s;
        bytes[j] = static_cast<std::uint8_t>(top);
      }
      return put_lines(bytes, 1, row, cell + 2 * kLineBytes);
  }
  SLUICE_CHECK(false, "codes of " + std::to_string(bits) + " bits");
}

void get_codes(const std::byte* cell, unsigned bits, std::size_t row, std::uint8_t* codes) {
  std::uint8_t bytes[16];
  switch (bits) {
    case 8:
      return get_lines(cell, 8, row, codes);
    case 4:
      get_lines(cell, 4, row, bytes);
      for (std::size_t c = 0; c < kCellColumns; ++c) codes[c] = bytes[c % 16] >> c / 16 * 4 & 15;
      return;
    case 3:
    case 2:
      get_lines(cell, 2, row, bytes);
      for (std::size_t c = 0; c < kCellColumns; ++c) codes[c] = bytes[c % 8] >> c / 8 * 2 & 3;
      if (bits == 2) return;
      get_lines(cell + 2 * kLineBytes, 1, row, bytes);
      for (std::size_t c = 0; c < kCellColumns; ++c)
        codes[c] = static_cast<std::uint8_t>(codes[c] | (bytes[c % 4] >> c / 4 & 1) << 2);
      return;
  }
  SLUICE_CHECK(false, "codes of " + std::to_string(bits) + " bits");
}

}  // namespace sluice::codec
