// What an instruction set may implement for packed_matmul.h. Plain structs, for files compiled with other
// flags.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/native/native_chunk.h"

namespace sluice::kernels {

// Eight rows of a packed matrix.
struct PackedGroup {
  bool coded;
  codec::NativeGroup group;         // valid if exponents are coded
  const std::byte* exponents;       // otherwise: 512·blocks exponents in tile order
  const std::byte* sign_mantissas;  // 512·blocks bytes; the next groups' bytes follow
  std::uint64_t blocks;
  std::byte* scratch;  // codec::native_scratch_bytes(blocks)
  // Memory to ask for meanwhile: the group this many after this one, with these lists.
  std::size_t ahead;
  const std::byte* next_lists;
  std::size_t next_lists_bytes;
};

inline constexpr std::size_t kFewPacked = 2;  // tokens at most

struct PackedGroupArgs {
  PackedGroup rows;
  const float* x;  // (tokens, x_stride), see matmul.h
  std::size_t x_stride;
  std::size_t tokens;  // 1 to kFewPacked
  float* out;          // (tokens, 8)
};

struct PackedKernels {
  // False if the group is damaged; `out` is then unspecified. Null: there is no such kernel, and the group is
  // decoded to words, which are multiplied.
  bool (*few)(const PackedGroupArgs& args);
};

}  // namespace sluice::kernels
