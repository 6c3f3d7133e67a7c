// What each instruction set implements for blocks of codes and activations in codes (coded_blocks.h). Plain
// structs, for files compiled with other flags.
#pragma once

#include <cstddef>
#include <type_traits>

#include "kernels/products/blocks/block_products_impl.h"

namespace sluice::kernels {

inline constexpr std::size_t kGroupColumns = 32;  // activations that share a scale
inline constexpr std::size_t kStripGroups = 8;    // totals of an output
inline constexpr std::size_t kStripColumns = kGroupColumns * kStripGroups;

// Where the codes of a token are. Float: float or const float.
template <class Float>
struct BlockCodes {
  using Byte = std::conditional_t<std::is_const_v<Float>, const std::byte, std::byte>;
  BlockCodes() = default;
  BlockCodes(Float* token, std::size_t columns)
      : codes(reinterpret_cast<Byte*>(token)), scales(token + columns / sizeof(float)) {
    const std::size_t padded = (columns + kStripColumns - 1) / kStripColumns * kStripGroups;
    minus_sums = scales + padded;
    minus_halves = reinterpret_cast<Byte*>(minus_sums + padded);
  }
  Byte* codes = nullptr;
  Float *scales = nullptr, *minus_sums = nullptr;
  Byte* minus_halves = nullptr;
};

// The kernels of BlockKernels, whose `x` is the output of code_for_blocks() here.
struct CodedBlockKernels {
  BlockKernels of;
};

}  // namespace sluice::kernels
