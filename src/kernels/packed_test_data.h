// Packed matrices for tests.
#pragma once

#include "kernels/packed_matmul.h"
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

// Turns all codes of a line of tier 1 into escapes, so that the counts are wrong. False if nothing is coded.
inline bool damage(Packed& packed) {
  for (PackedChunk& chunk : packed.chunks) {
    if (!chunk.coded) continue;
    std::vector<std::byte>& bytes =
        packed.chunk_bytes[static_cast<std::size_t>(&chunk - packed.chunks.data())];
    const codec::NativeChunk coded(bytes, {chunk.groups, packed.shape.blocks()});
    const auto tier1 = static_cast<std::size_t>(coded.group(0).tier1 - bytes.data());
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(tier1), 64, std::byte{0xff});
    chunk.bytes = bytes;
    return true;
  }
  return false;
}

}  // namespace sluice::kernels
