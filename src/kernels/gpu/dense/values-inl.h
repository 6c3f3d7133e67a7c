// The second half of attention on a GPU: weights of scores, and sums of values.
#pragma once

#include <cstdint>

#include "kernels/gpu/dense/attention_rows.h"
#include "kernels/gpu/dense/cache_element-inl.h"
#include "kernels/gpu/lanes-inl.h"

namespace sluice::kernels::gpu {

struct ValuesArgs {
  AttentionRows rows;
  AttentionCache values;
  std::uint32_t value_dim;
  const float* sinks;  // (heads); null: none
  float* out;
};

// A warp has 32 columns of a query row, and takes 32 positions at a time, ascending. It computes their
// weights by itself: 32 for 1024 products.
template <class Element>
struct ValuesKernel {
  using Args = ValuesArgs;
  static constexpr std::uint32_t kBlock = AttentionRows::kBlock;

  static SLUICE_GPU_HOST std::uint32_t column_parts(const Args& args) { return (args.value_dim + 31) / 32; }
  static std::uint64_t warps(const Args& args) {
    return std::uint64_t{args.rows.kv_heads} * column_parts(args) * args.rows.queries;
  }

  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    using Float = typename Warp::Float;
    using Word = typename Warp::Word;
    const AttentionRows& rows = args.rows;
    const auto query = static_cast<std::uint32_t>(warp.index() % rows.queries);
    const std::uint64_t above = warp.index() / rows.queries;
    const std::uint32_t kv_head = rows.first_kv_head + static_cast<std::uint32_t>(above / column_parts(args));
    const std::uint32_t first_column = static_cast<std::uint32_t>(above % column_parts(args)) * 32;
    const Word lane = warp.lane(), column = Word(first_column) + lane;

    Block<Warp> block(warp, args, rows.seen(query));
    block.columns = column < Word(args.value_dim);
    block.values =
        args.values.data + std::uint64_t{kv_head} * args.values.head_bytes + first_column * Element::kBytes;
    if constexpr (Element::kCodes)
      block.scales = args.values.scales + (std::uint64_t{kv_head} * args.values.groups +
                                           first_column / static_cast<std::uint32_t>(kCacheGroup)) *
                                              args.values.scale_stride;
    const std::uint32_t first_block = block.seen.begin / kBlock, end = (block.seen.end + kBlock - 1) / kBlock;
    const Float most = largest(warp, args, kv_head, query, first_block, end);
    const float* const scores = rows.row_scores(kv_head, query);

    Float sum(0.0f), total(0.0f);
    // Adds block b, whose values are in `now`, while those of the block after the next go into `later`.
    const auto step = [&](std::uint32_t b, const Word(&now)[kBlock], Word(&later)[kBlock]) {
      if (b >= end) return;
      if (b + 2 < end) block.load(b + 2, later);
      const Word position = Word(b * kBlock) + lane;
      const auto mask = position >= Word(block.seen.begin) && position < Word(block.seen.end);
      const Float score = warp.load_if(mask, scores + (b - rows.first_block) * kBlock, lane, Float(0.0f));
      Float weight = warp.select(mask, exp(warp, score - most), Float(0.0f));
      // Sixteen lanes by position; only the lower half of the warp has them. A weight is no less than zero,
      // so zeros change nothing.
      total = (total + weight) + warp.shuffle_xor(weight, 16);
      if constexpr (Element::kCodes)
        weight = weight * warp.load_if(mask, block.scales + args.values.block_row(b), lane, Float(0.0f));
      block.add(b, now, weight, sum);
    };
    Word first[kBlock], second[kBlock], third[kBlock];
    block.load(first_block, first);
    if (first_block + 1 < end) block.load(first_block + 1, second);
    for (std::uint32_t b = first_block; b < end; b += 3) {
      step(b, first, third);
      step(b + 1, second, first);
      step(b + 2, third, second);
    }
    // The sum's lanes count from the first position that is seen, but its tree is the same from any lane on.
    total = sum_tree(warp, warp.shuffle(total, lane % Word(16)));
    const std::uint32_t head = rows.head(kv_head, query);
    if (args.sinks != nullptr) total = total + exp(warp, Float(args.sinks[head]) - most);
    warp.store_if(block.columns, args.out + rows.row(kv_head, query) * args.value_dim, column, sum / total);
  }

 private:
  template <class Warp>
  static SLUICE_GPU typename Warp::Float largest(const Warp& warp, const Args& args, std::uint32_t kv_head,
                                                 std::uint32_t query, std::uint32_t begin,
                                                 std::uint32_t end) {
    using Float = typename Warp::Float;
    using Word = typename Warp::Word;
    const float* const of_blocks = args.rows.row_largest(kv_head, query);
    begin -= args.rows.first_block, end -= args.rows.first_block;
    Float most(-__builtin_inff());
    for (; begin < end; begin += 32) {
      const Word at = Word(begin) + warp.lane();
      most = warp.max(most, warp.load_if(at < Word(end), of_blocks, at, Float(-__builtin_inff())));
    }
    SLUICE_GPU_UNROLL
    for (std::uint32_t step = 16; step > 0; step /= 2) most = warp.max(most, warp.shuffle_xor(most, step));
    if (args.sinks != nullptr) most = warp.max(most, Float(args.sinks[args.rows.head(kv_head, query)]));
    return most;
  }

  template <class Warp>
  struct Block {
    using Float = typename Warp::Float;
    using Word = typename Warp::Word;
    SLUICE_GPU Block(const Warp& w, const Args& a, PositionRange range) : warp(w), args(a), seen(range) {}
    const Warp& warp;
    const Args& args;
    PositionRange seen;
    typename Warp::Mask columns;
    const std::byte* values;  // the warp's first column of row 0
    const float* scales;      // scales of row 0

    SLUICE_GPU bool whole(std::uint32_t block) const {
      return seen.begin <= block * kBlock && seen.end >= (block + 1) * kBlock;
    }
    SLUICE_GPU bool sees(std::uint32_t position) const {
      return position >= seen.begin && position < seen.end;
    }

    SLUICE_GPU void load(std::uint32_t block, Word (&raw)[kBlock]) const {
      const std::byte* const rows = values + args.values.block_row(block) * args.values.row_bytes;
      const Word at = warp.lane() * Word(Element::kBytes);
      const bool all = whole(block);
      SLUICE_GPU_UNROLL
      for (std::uint32_t i = 0; i < kBlock; ++i) {
        const auto mask = columns && typename Warp::Mask(all || sees(block * kBlock + i));
        raw[i] = Element::raw_if(warp, mask, rows + i * args.values.row_bytes, at);
      }
    }

    SLUICE_GPU void add(std::uint32_t block, const Word (&raw)[kBlock], Float weight, Float& sum) const {
      const bool all = whole(block);
      SLUICE_GPU_UNROLL
      for (std::uint32_t i = 0; i < kBlock; ++i) {
        const Float added = warp.fma(warp.shuffle(weight, Word(i)), Element::number(warp, raw[i]), sum);
        sum = warp.select(typename Warp::Mask(all || sees(block * kBlock + i)), added, sum);
      }
    }
  };
};

}  // namespace sluice::kernels::gpu
