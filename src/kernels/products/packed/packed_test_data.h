// Packed matrices for tests.
#pragma once

#include "codec/matrix_format.h"
#include "codec/native/native_chunk.h"
#include "device/space.h"
#include "kernels/test_data.h"

namespace sluice::kernels {

// A matrix as words, and as planes in chunks of some groups each.
struct Packed {
  std::vector<std::byte> words, sign_mantissas, exponents;
  std::vector<codec::PlaneChunk> chunks;  // chunks of `exponents`
  codec::TileShape shape;
  codec::MatrixRef weight() const {
    const device::HostSpace& space = device::host_space();
    return {&codec::kFormatPacked,
            {shape.rows, shape.columns},
            {space.address(sign_mantissas.data()), space.address(exponents.data())},
            chunks};
  }
};

inline Packed pack_numbers(std::mt19937_64& random, std::size_t rows, std::size_t columns,
                           const std::vector<float>& numbers) {
  Packed result;
  result.shape = {rows, columns};
  result.words = encode(numbers, DType::kBF16);
  const std::uint64_t group_places = result.shape.group_places();
  std::vector<std::byte> exponents(result.shape.places());
  result.sign_mantissas.resize(result.shape.places());
  codec::split_tiles(result.words, result.shape, exponents, result.sign_mantissas);
  for (std::uint64_t group = 0; group < result.shape.groups();) {
    const std::uint64_t groups = std::min<std::uint64_t>(1 + random() % 5, result.shape.groups() - group);
    const codec::TileRows part = codec::tile_rows(result.shape, group * group_places, groups * group_places);
    const std::span<const std::byte> raw =
        std::span<const std::byte>(exponents).subspan(group * group_places, groups * group_places);
    const std::vector<std::byte> coded = codec::encode_native(raw, part.shape);
    const bool use = !coded.empty() && random() % 4 != 0;
    const std::span<const std::byte> stored = use ? std::span<const std::byte>(coded) : raw;
    result.chunks.push_back(
        {result.exponents.size(), stored.size(), group * group_places, groups * group_places, 0, use});
    result.exponents.insert(result.exponents.end(), stored.begin(), stored.end());
    group += groups;
  }
  return result;
}

inline Packed pack_matrix(std::mt19937_64& random, std::size_t rows, std::size_t columns, bool wild) {
  return pack_numbers(random, rows, columns,
                      wild ? wild_floats(random, rows * columns) : normal_floats(random, rows * columns));
}

// A packed matrix of normal numbers in which all codes of a line of tier 1 are escapes, so that the counts
// are wrong. A matrix without a coded chunk has no such line; another is drawn.
inline Packed damaged_matrix(std::mt19937_64& random, std::size_t rows, std::size_t columns) {
  while (true) {
    Packed packed = pack_matrix(random, rows, columns, false);
    for (const codec::PlaneChunk& chunk : packed.chunks) {
      if (!chunk.coded) continue;
      const std::span<std::byte> bytes = std::span(packed.exponents).subspan(chunk.place, chunk.bytes);
      const codec::NativeChunk coded(bytes,
                                     {chunk.count / packed.shape.group_places(), packed.shape.blocks()});
      std::fill_n(bytes.begin() + (coded.group(0).tier1 - bytes.data()), 64, std::byte{0xff});
      return packed;
    }
  }
}

}  // namespace sluice::kernels
