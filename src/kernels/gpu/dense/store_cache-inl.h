// store_cache() on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/attention.h"
#include "kernels/gpu/dense/row_part-inl.h"
#include "kernels/gpu/warp.h"

namespace sluice::kernels::gpu {

// A position's row in a cache whose table of blocks kernels can read; null: there is none.
SLUICE_GPU std::uint64_t cache_row(const std::uint32_t* blocks, std::uint64_t position) {
  if (blocks == nullptr) return position;
  return std::uint64_t{blocks[position / kCacheBlock]} * kCacheBlock + position % kCacheBlock;
}

struct StoreCacheArgs {
  const float* x;
  std::uint64_t x_stride;
  std::byte* data;
  std::uint64_t row_bytes;
  const std::uint32_t* blocks;
  std::uint64_t first_position;
  std::uint32_t columns;  // columns of a row; for codes: of a head
  std::uint32_t heads;
  float* scales;
  std::uint64_t scale_stride;
};

// float_to_bf16().
template <class Warp>
SLUICE_GPU typename Warp::Word bf16_word(const Warp& warp, typename Warp::Float value) {
  using Word = typename Warp::Word;
  const Word bits = warp.bits(value), high = bits >> Word(16);
  const auto nan = (bits & Word(0x7fffffffu)) > Word(0x7f800000u);
  return warp.select(nan, high | Word(0x40u), (bits + Word(0x7fffu) + (high & Word(1))) >> Word(16));
}

// Tokens are rows (RowPart).
template <bool kBf16>
struct StoreNumbersKernel {
  using Args = StoreCacheArgs;
  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    using Float = typename Warp::Float;
    const RowPart part = RowPart::of(warp.index(), args.columns);
    const float* const x = args.x + part.row * args.x_stride + part.begin;
    std::byte* const to = args.data +
                          cache_row(args.blocks, args.first_position + part.row) * args.row_bytes +
                          part.begin * (kBf16 ? 2 : 4);
    each_number(warp, part, [&](auto at, auto mask) {
      const Float v = warp.load_if(mask, x, at, Float(0.0f));
      if constexpr (kBf16) {
        warp.store_half_if(mask, to, at + at, bf16_word(warp, v));
      } else {
        warp.store_if(mask, reinterpret_cast<float*>(to), at, v);
      }
    });
  }
};

// A warp a group of a head of a token.
struct StoreCodesKernel {
  using Args = StoreCacheArgs;
  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    using Float = typename Warp::Float;
    using Word = typename Warp::Word;
    constexpr std::uint32_t kGroup = kCacheGroup;
    const std::uint32_t groups = (args.columns + kGroup - 1) / kGroup, of_row = args.heads * groups;
    const std::uint64_t token = warp.index() / of_row;
    const auto at = static_cast<std::uint32_t>(warp.index() % of_row);  // the group, in its row
    const std::uint32_t begin = at % groups * kGroup;                   // in its head
    const std::uint32_t count = args.columns - begin < kGroup ? args.columns - begin : kGroup;
    const std::uint64_t first = std::uint64_t{at / groups} * args.columns + begin;
    const std::uint64_t row = cache_row(args.blocks, args.first_position + token);
    const float* const x = args.x + token * args.x_stride + first;

    Float numbers[2];
    Float most(0.0f);
    auto finite = Word(0) == Word(0);
    SLUICE_GPU_UNROLL
    for (std::uint32_t i = 0; i < 2; ++i) {
      const Word lane = Word(32 * i) + warp.lane();
      numbers[i] = warp.load_if(lane < Word(count), x, lane, Float(0.0f));
      const Word size = warp.bits(numbers[i]) & Word(0x7fffffffu);
      finite = finite && size < Word(0x7f800000u);
      most = warp.max(most, warp.number(size));
    }
    for (std::uint32_t step = 16; step > 0; step /= 2) most = warp.max(most, warp.shuffle_xor(most, step));
    const bool all = warp.ballot(finite) == ~0u;
    const Float scale =
        all ? warp.max(most / Float(127.0f), Float(0x1p-126f)) : warp.number(Word(0x7fc00000u));
    std::byte* const to = args.data + row * args.row_bytes + first;
    SLUICE_GPU_UNROLL
    for (std::uint32_t i = 0; i < 2; ++i) {
      const Word lane = Word(32 * i) + warp.lane();
      // A sum with 1.5 · 2^23 is a whole number, rounded to even, in the low bits.
      const Word code = warp.bits(numbers[i] / scale + Float(12582912.0f));
      warp.store_byte_if(lane < Word(count), to, lane, all ? code & Word(0xffu) : Word(0));
    }
    warp.store_if(warp.lane() == Word(0), args.scales + at * args.scale_stride + row, Word(0), scale);
  }
};

}  // namespace sluice::kernels::gpu
