#include "codec/tiles.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace sluice::codec {
namespace {

constexpr std::size_t kRun = 8;  // neighbours in a row that are neighbours in a line

// 64 words of a row to a line of each plane.
void split_line(const std::byte* words, std::byte* exponents, std::byte* sign_mantissas) {
  for (std::size_t first = 0; first < kTileColumns; first += kRun) {
    const std::size_t place = place_of_column(first);
    for (std::size_t i = 0; i < kRun; ++i) {
      const unsigned low = static_cast<unsigned>(words[2 * (first + i)]);
      const unsigned high = static_cast<unsigned>(words[2 * (first + i) + 1]);
      exponents[place + i] = static_cast<std::byte>(high << 1 | low >> 7);
      sign_mantissas[place + i] = static_cast<std::byte>((high & 0x80) | (low & 0x7f));
    }
  }
}

}  // namespace

std::size_t columns_in_block(TileShape shape, std::uint64_t block) {
  return static_cast<std::size_t>(
      std::min<std::uint64_t>(kTileColumns, shape.columns - block * kTileColumns));
}

namespace {

// line(64 words, first place of the line) for every line, padded with zeros.
template <class Line>
void for_each_line(std::span<const std::byte> words, TileShape shape, const Line& line) {
  SLUICE_CHECK(words.size() == 2 * shape.rows * shape.columns, std::to_string(words.size()));
  std::size_t place = 0;
  for (std::uint64_t group = 0; group < shape.groups(); ++group) {
    for (std::uint64_t block = 0; block < shape.blocks(); ++block) {
      for (std::size_t r = 0; r < kTileRows; ++r, place += kTileColumns) {
        const std::uint64_t row = group * kTileRows + r;
        const std::size_t count = row < shape.rows ? columns_in_block(shape, block) : 0;
        const std::byte* const first =
            count == 0 ? nullptr : words.data() + 2 * (row * shape.columns + block * kTileColumns);
        if (count == kTileColumns) {
          line(first, place);
          continue;
        }
        std::byte padded[2 * kTileColumns] = {};
        if (count > 0) std::memcpy(padded, first, 2 * count);
        line(padded, place);
      }
    }
  }
}

}  // namespace

void split_tiles(std::span<const std::byte> words, TileShape shape, std::span<std::byte> exponents,
                 std::span<std::byte> sign_mantissas) {
  SLUICE_CHECK(exponents.size() == shape.places() && sign_mantissas.size() == shape.places(),
               std::to_string(exponents.size()) + ", " + std::to_string(sign_mantissas.size()));
  for_each_line(words, shape, [&](const std::byte* line, std::size_t place) {
    split_line(line, &exponents[place], &sign_mantissas[place]);
  });
}

void sign_mantissa_tiles(std::span<const std::byte> words, TileShape shape,
                         std::span<std::byte> sign_mantissas) {
  SLUICE_CHECK(sign_mantissas.size() == shape.places(), std::to_string(sign_mantissas.size()));
  for_each_line(words, shape, [&](const std::byte* line, std::size_t place) {
    std::byte exponents[kTileColumns];
    split_line(line, exponents, &sign_mantissas[place]);
  });
}

void untile(std::span<const std::byte> plane, TileShape shape, std::span<std::byte> elements) {
  SLUICE_CHECK(plane.size() == shape.places() && elements.size() == shape.rows * shape.columns,
               std::to_string(plane.size()));
  for (std::uint64_t row = 0; row < shape.rows; ++row) {
    for (std::uint64_t block = 0; block < shape.blocks(); ++block) {
      const std::uint64_t line =
          (row / kTileRows * shape.blocks() + block) * kTilePlaces + row % kTileRows * kTileColumns;
      const std::size_t count = columns_in_block(shape, block);
      for (std::size_t c = 0; c < count; ++c)
        elements[row * shape.columns + block * kTileColumns + c] = plane[line + place_of_column(c)];
    }
  }
}

}  // namespace sluice::codec
