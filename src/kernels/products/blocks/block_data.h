// Matrices in blocks of codes with random content, for tests and benchmarks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "codec/matrix_format.h"

namespace sluice::kernels {

// Where a block has binary16 numbers; the scales of MXFP4 are whole bytes.
struct Blocks {
  const codec::MatrixFormat& format;
  std::vector<std::size_t> halves;
};

inline const std::vector<Blocks>& all_blocks() {
  static const std::vector<Blocks> kAll = {
      {codec::kFormatQ80, {0}},    {codec::kFormatQ4K, {0, 2}},   {codec::kFormatQ6K, {208}},
      {codec::kFormatMxfp4, {}},   {codec::kFormatMxfp4Pair, {}}, {codec::kFormatQ40, {0}},
      {codec::kFormatQ5K, {0, 2}}, {codec::kFormatQ50, {0}},      {codec::kFormatQ41, {0, 2}},
      {codec::kFormatQ51, {0, 2}}, {codec::kFormatQ2K, {80, 82}}, {codec::kFormatQ3K, {108}},
      {codec::kFormatIq4Nl, {0}},  {codec::kFormatIq4Xs, {0}},
  };
  return kAll;
}

enum class BlockScales { kAlike, kAny };  // all of about the same size, or any that the format allows

// Fills a plane of whole blocks.
inline void fill_blocks(const Blocks& blocks, std::size_t plane, BlockScales scales, std::mt19937_64& random,
                        std::span<std::byte> bytes) {
  const bool alike = scales == BlockScales::kAlike;
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  const std::size_t block = blocks.format.plane_bytes(blocks.format.block, plane);
  for (std::size_t at = 0; at < bytes.size(); at += block) {
    if (blocks.halves.empty() && plane + 1 == blocks.format.plane_count())
      bytes[at] = static_cast<std::byte>(alike ? 120 + random() % 10 : random() % 255);
    for (const std::size_t half : blocks.halves) {
      auto word = static_cast<std::uint16_t>(random());
      if (alike) word = static_cast<std::uint16_t>((word & 0x8fff) | 0x2000);
      if ((word & 0x7c00) == 0x7c00) word &= 0xbfff;  // infinite or no number
      std::memcpy(&bytes[at + half], &word, sizeof(word));
    }
  }
}

}  // namespace sluice::kernels
