#include "codec/native/tiles.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "codec/native/native_encode_impl.h"

namespace sluice::codec {
TileShape stored_shape(TileShape matrix) {
  constexpr std::uint64_t kShare = 16, kMostColumns = 512;
  const std::uint64_t elements = matrix.rows * matrix.columns;
  if (matrix.places() - elements <= elements / kShare) return matrix;
  // Cost in quarters of a byte: a place's two planes, and a group's entry in the directory.
  const auto cost = [](TileShape shape) { return 5 * shape.places() + 48 * shape.groups(); };
  TileShape best = matrix;
  for (std::uint64_t columns = kTileColumns; columns <= kMostColumns; columns += kTileColumns) {
    const TileShape shape{elements / columns, columns};
    if (elements % columns == 0 && shape.places() < matrix.places() && cost(shape) < cost(best)) best = shape;
  }
  return best;
}

std::size_t columns_in_block(TileShape shape, std::uint64_t block) {
  return static_cast<std::size_t>(
      std::min<std::uint64_t>(kTileColumns, shape.columns - block * kTileColumns));
}

namespace {

// Calls split(words, number of lines, first place) for all lines; the whole lines of one row go in one call.
// Pads lines that are partly padding with zeros.
template <class Split>
void for_each_line(std::span<const std::byte> words, TileShape shape, const Split& split) {
  SLUICE_CHECK(words.size() == 2 * shape.rows * shape.columns, std::to_string(words.size()));
  const std::uint64_t whole = shape.columns / kTileColumns;
  for (std::uint64_t group = 0; group < shape.groups(); ++group) {
    for (std::size_t r = 0; r < kTileRows; ++r) {
      const std::uint64_t row = group * kTileRows + r;
      const bool exists = row < shape.rows;
      const std::byte* const first = exists ? words.data() + 2 * row * shape.columns : nullptr;
      const std::size_t place = group * shape.group_places() + r * kTileColumns;
      if (exists && whole > 0) split(first, whole, place);
      for (std::uint64_t block = exists ? whole : 0; block < shape.blocks(); ++block) {
        std::byte padded[2 * kTileColumns] = {};
        if (exists) std::memcpy(padded, first + 2 * block * kTileColumns, 2 * columns_in_block(shape, block));
        split(padded, 1, place + block * kTilePlaces);
      }
    }
  }
}

}  // namespace

void split_tiles(std::span<const std::byte> words, TileShape shape, std::span<std::byte> exponents,
                 std::span<std::byte> sign_mantissas, Isa isa) {
  SLUICE_CHECK(exponents.size() == shape.places() && sign_mantissas.size() == shape.places(),
               std::to_string(exponents.size()) + ", " + std::to_string(sign_mantissas.size()));
  const NativeEncodeKernels& kernels = native_encode_kernels(isa);
  for_each_line(words, shape, [&](const std::byte* from, std::size_t lines, std::size_t place) {
    kernels.split_lines(from, lines, &exponents[place], &sign_mantissas[place]);
  });
}

void sign_mantissa_tiles(std::span<const std::byte> words, TileShape shape,
                         std::span<std::byte> sign_mantissas, Isa isa) {
  SLUICE_CHECK(sign_mantissas.size() == shape.places(), std::to_string(sign_mantissas.size()));
  const NativeEncodeKernels& kernels = native_encode_kernels(isa);
  for_each_line(words, shape, [&](const std::byte* from, std::size_t lines, std::size_t place) {
    std::byte exponents[kTileColumns];
    for (std::size_t i = 0; i < lines; ++i)
      kernels.split_lines(from + i * 2 * kTileColumns, 1, exponents,
                          &sign_mantissas[place + i * kTilePlaces]);
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
