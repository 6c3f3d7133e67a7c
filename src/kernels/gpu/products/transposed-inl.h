// matmul_transposed() on a GPU: rows ascending, one fused multiply-add each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "kernels/gpu/warp.h"

namespace sluice::kernels::gpu {

struct TransposedKernel {
  struct Args {
    const float* x;
    const std::byte* weights;
    float* y;
    std::uint64_t x_stride, y_stride;
    std::uint32_t rows, columns, tokens;
    std::uint32_t column_tiles, token_tiles;
    DType type;
  };
  static constexpr std::uint32_t kColumns = 32;
  static constexpr int kTokens = 4;

  // 32 columns of a few tokens: a lane a column.
  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    const auto tile = static_cast<std::uint32_t>(warp.index());
    const std::uint32_t first = tile % args.column_tiles * kColumns,
                        token = tile / args.column_tiles * kTokens;
    if (token >= args.tokens) return;
    if (reinterpret_cast<std::uintptr_t>(args.weights) % 4 != 0) {
      sum_rows(warp, args, first, token,
               [](const Warp& w, DType type, const std::byte* p, auto at, auto mask) {
                 return by_bytes(w, type, p, at, mask);
               });
    } else {
      sum_rows(warp, args, first, token,
               [](const Warp& w, DType type, const std::byte* p, auto at, auto mask) {
                 return aligned(w, type, p, at, mask);
               });
    }
  }

 private:
  static SLUICE_GPU std::uint32_t bytes_of(DType type) { return type == DType::kF32 ? 4 : 2; }

  template <class Warp>
  static SLUICE_GPU typename Warp::Float number(const Warp& warp, DType type, typename Warp::Word bits) {
    if (type == DType::kBF16) return warp.number(bits << typename Warp::Word(16));
    if (type == DType::kF16) return warp.from_f16(bits);
    return warp.number(bits);
  }
  template <class Warp>
  static SLUICE_GPU typename Warp::Float aligned(const Warp& warp, DType type, const std::byte* p,
                                                 typename Warp::Word at, typename Warp::Mask mask) {
    if (type == DType::kF32) return number(warp, type, warp.template load_words_if<1>(mask, p, at).of[0]);
    return number(warp, type, warp.load_half_if(mask, p, at, typename Warp::Word(0)));
  }
  template <class Warp>
  static SLUICE_GPU typename Warp::Float by_bytes(const Warp& warp, DType type, const std::byte* p,
                                                  typename Warp::Word at, typename Warp::Mask mask) {
    using Word = typename Warp::Word;
    Word bits(0);
    for (std::uint32_t i = 0; i < bytes_of(type); ++i)
      bits = bits | warp.load_byte_if(mask, p, at + Word(i), Word(0)) << Word(8 * i);
    return number(warp, type, bits);
  }

  template <class Warp, class Element>
  static SLUICE_GPU void sum_rows(const Warp& warp, const Args& args, std::uint32_t first,
                                  std::uint32_t token, const Element& element) {
    using Float = typename Warp::Float;
    using Word = typename Warp::Word;
    constexpr std::uint32_t kAhead = 8;  // rows that are read before the first of them is used
    const Word column = Word(first) + warp.lane();
    const auto there = column < Word(args.columns);
    const Word at = column * Word(bytes_of(args.type));
    const std::size_t row_bytes = std::size_t{args.columns} * bytes_of(args.type);
    Float sums[kTokens];
    const float* x[kTokens];
    SLUICE_GPU_UNROLL
    for (int t = 0; t < kTokens; ++t) {
      sums[t] = Float(0.0f);
      const std::uint32_t of = token + t < args.tokens ? token + t : args.tokens - 1;
      x[t] = args.x + of * args.x_stride;
    }
    const auto add = [&](std::uint32_t row, const Float& weight) {
      SLUICE_GPU_UNROLL
      for (int t = 0; t < kTokens; ++t) sums[t] = warp.fma(Float(x[t][row]), weight, sums[t]);
    };
    const std::byte* weights = args.weights;
    std::uint32_t row = 0;
    for (; row + kAhead <= args.rows; row += kAhead) {
      Float some[kAhead];
      SLUICE_GPU_UNROLL
      for (std::uint32_t i = 0; i < kAhead; ++i)
        some[i] = element(warp, args.type, weights + i * row_bytes, at, there);
      SLUICE_GPU_UNROLL
      for (std::uint32_t i = 0; i < kAhead; ++i) add(row + i, some[i]);
      weights += kAhead * row_bytes;
    }
    for (; row < args.rows; ++row) {
      add(row, element(warp, args.type, weights, at, there));
      weights += row_bytes;
    }
    SLUICE_GPU_UNROLL
    for (int t = 0; t < kTokens; ++t)
      if (token + t < args.tokens)
        warp.store_if(there, args.y + (token + t) * args.y_stride, column, sums[t]);
  }
};

}  // namespace sluice::kernels::gpu
