// Packed matrices for tests.
#pragma once

#include "kernels/products/packed/packed_matmul.h"
#include "kernels/test_data.h"

namespace sluice::kernels {

// A matrix as words, and as planes in chunks of some groups each.
struct Packed {
  std::vector<std::byte> words, sign_mantissas;
  std::vector<std::vector<std::byte>> chunk_bytes;
  std::vector<PackedChunk> chunks;
  codec::TileShape shape;
  PackedWeight weight() const { return {shape, sign_mantissas.data(), chunks}; }
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
    std::vector<std::byte> coded = codec::encode_native(raw, part.shape);
    const bool use = !coded.empty() && random() % 4 != 0;
    result.chunk_bytes.push_back(use ? std::move(coded) : std::vector<std::byte>(raw.begin(), raw.end()));
    result.chunks.push_back({{}, group, groups, use});
    group += groups;
  }
  for (std::size_t i = 0; i < result.chunks.size(); ++i) result.chunks[i].bytes = result.chunk_bytes[i];
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
    for (std::size_t i = 0; i < packed.chunks.size(); ++i) {
      PackedChunk& chunk = packed.chunks[i];
      if (!chunk.coded) continue;
      std::vector<std::byte>& bytes = packed.chunk_bytes[i];
      const codec::NativeChunk coded(bytes, {chunk.groups, packed.shape.blocks()});
      std::fill_n(bytes.begin() + (coded.group(0).tier1 - bytes.data()), 64, std::byte{0xff});
      chunk.bytes = bytes;
      return packed;
    }
  }
}

}  // namespace sluice::kernels
