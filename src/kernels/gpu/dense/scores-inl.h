// The scores of attention on a GPU, and the largest of each block of positions.
#pragma once

#include <cstdint>

#include "kernels/gpu/dense/attention_rows.h"
#include "kernels/gpu/dense/cache_element-inl.h"
#include "kernels/gpu/lanes-inl.h"

namespace sluice::kernels::gpu {

struct ScoresArgs {
  AttentionRows rows;
  AttentionCache keys;
  std::uint32_t key_dim;
  float scale;
  const float* q;
  const float* bias;  // ScoreBias
  std::uint64_t bias_stride, bias_center;
};

// A warp has a block of 32 positions and kQueries queries of a kv head. Four neighbouring lanes work on a
// position: each has four of the sixteen lanes of the sums (matmul.h), so that it reads eight neighbouring
// columns of 32. The warp takes eight positions at once, four times. kWhole: key_dim is a multiple of 32, and
// rows of keys and queries begin at multiples of 16 bytes.
template <class Element, bool kWhole, std::uint32_t kQueries>
struct ScoresKernel {
  using Args = ScoresArgs;
  static constexpr std::uint32_t kTurns = 4;

  static SLUICE_GPU_HOST std::uint64_t tiles(const AttentionRows& rows) {
    return (rows.queries + kQueries - 1) / kQueries;
  }
  static std::uint64_t warps(const AttentionRows& rows) {
    return std::uint64_t{rows.kv_heads} * rows.blocks * tiles(rows);
  }

  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    using Word = typename Warp::Word;
    const AttentionRows& rows = args.rows;
    Tile<Warp> tile(warp, args);
    const std::uint64_t above = warp.index() / tiles(rows);
    tile.kv_head = rows.first_kv_head + static_cast<std::uint32_t>(above / rows.blocks);
    tile.first = static_cast<std::uint32_t>(warp.index() % tiles(rows)) * kQueries;
    tile.count = rows.queries - tile.first < kQueries ? rows.queries - tile.first : kQueries;
    const std::uint32_t block = rows.first_block + static_cast<std::uint32_t>(above % rows.blocks);
    const std::uint32_t position = block * AttentionRows::kBlock;
    const PositionRange first = rows.seen(tile.first), last = rows.seen(tile.first + tile.count - 1);
    if (first.begin >= position + AttentionRows::kBlock || last.end <= position) return;  // nobody sees it
    const std::uint32_t low = first.begin > position ? first.begin - position : 0;
    const std::uint32_t high =
        (last.end - position < AttentionRows::kBlock ? last.end - position : AttentionRows::kBlock) - 1;
    tile.first_row = args.keys.block_row(block);
    tile.keys = args.keys.data + tile.first_row * args.keys.row_bytes +
                std::uint64_t{tile.kv_head} * args.keys.head_bytes;
    tile.column = warp.lane() % Word(4) * Word(8);
    SLUICE_GPU_UNROLL
    for (std::uint32_t turn = 0; turn < kTurns; ++turn) {  // rows that nobody sees are not read
      Word at = Word(8 * turn) + warp.lane() / Word(4);
      at = warp.select(at < Word(low), Word(low), at);
      tile.at[turn] = warp.select(at > Word(high), Word(high), at);
    }
    SLUICE_GPU_UNROLL
    for (std::uint32_t i = 0; i < kQueries; ++i) {
      const std::uint32_t query = tile.first + (i < tile.count ? i : 0);
      tile.q[i] = args.q + rows.row(tile.kv_head, query) * args.key_dim;
    }
    tile.score();
    tile.keep(block);
  }

 private:
  template <class Warp>
  struct Tile {
    using Float = typename Warp::Float;
    using Word = typename Warp::Word;
    SLUICE_GPU Tile(const Warp& w, const Args& a) : warp(w), args(a) {}
    const Warp& warp;
    const Args& args;
    std::uint32_t kv_head, first, count;  // queries
    std::uint64_t first_row;
    const std::byte* keys;
    Word at[kTurns];  // rows, counted from the first of the block
    Word column;      // the first of eight, counted from 32 columns
    const float* q[kQueries];
    Float scores[kTurns][kQueries];

    SLUICE_GPU void score() {
      Float lanes[kTurns][kQueries][4];
      if constexpr (Element::kCodes) {
        for (std::uint32_t group = 0; group * kCacheGroup < args.key_dim; ++group) {
          clear(lanes);
          add(lanes, group * 64);
          if (group * 64 + 32 < args.key_dim) add(lanes, group * 64 + 32);
          const float* const scales =
              args.keys.scales +
              (std::uint64_t{kv_head} * args.keys.groups + group) * args.keys.scale_stride + first_row;
          SLUICE_GPU_UNROLL
          for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
            const Float scale = warp.load(scales, at[turn]);
            SLUICE_GPU_UNROLL
            for (std::uint32_t i = 0; i < kQueries; ++i) {
              const Float dot = sum(lanes[turn][i]);
              scores[turn][i] = group == 0 ? scale * dot : warp.fma(scale, dot, scores[turn][i]);
            }
          }
        }
        return;
      }
      clear(lanes);
      for (std::uint32_t begin = 0; begin < args.key_dim; begin += 32) add(lanes, begin);
      SLUICE_GPU_UNROLL
      for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
        SLUICE_GPU_UNROLL
        for (std::uint32_t i = 0; i < kQueries; ++i) scores[turn][i] = sum(lanes[turn][i]);
      }
    }

    static SLUICE_GPU void clear(Float (&lanes)[kTurns][kQueries][4]) {
      SLUICE_GPU_UNROLL
      for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
        SLUICE_GPU_UNROLL
        for (std::uint32_t i = 0; i < kQueries; ++i) {
          SLUICE_GPU_UNROLL
          for (int l = 0; l < 4; ++l) lanes[turn][i][l] = Float(0.0f);
        }
      }
    }

    // 32 columns from `begin` on; those behind the last are zeros. Where all 32 are, the host adds them and
    // this does not: only the sign of a zero could differ, and weights of scores +0 and −0 do not.
    SLUICE_GPU void add(Float (&lanes)[kTurns][kQueries][4], std::uint32_t begin) {
      Float queries[kQueries][8];
      SLUICE_GPU_UNROLL
      for (std::uint32_t i = 0; i < kQueries; ++i) {
        if constexpr (kWhole) {
          CacheF32::eight(warp, reinterpret_cast<const std::byte*>(q[i] + begin), column * Word(4),
                          queries[i]);
        } else {
          SLUICE_GPU_UNROLL
          for (std::uint32_t c = 0; c < 8; ++c) {
            const Word col = Word(begin + c) + column;
            queries[i][c] = warp.load_if(col < Word(args.key_dim), q[i], col, Float(0.0f));
          }
        }
      }
      SLUICE_GPU_UNROLL
      for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
        Float key[8];
        const Word row = at[turn] * Word(static_cast<std::uint32_t>(args.keys.row_bytes));
        if constexpr (kWhole) {
          Element::eight(warp, keys + begin * Element::kBytes, row + column * Word(Element::kBytes), key);
        } else {
          SLUICE_GPU_UNROLL
          for (std::uint32_t c = 0; c < 8; ++c) {
            const Word col = Word(begin + c) + column;
            key[c] = Element::number(warp, Element::raw_if(warp, col < Word(args.key_dim), keys,
                                                           row + col * Word(Element::kBytes)));
          }
        }
        SLUICE_GPU_UNROLL
        for (std::uint32_t i = 0; i < kQueries; ++i) {
          SLUICE_GPU_UNROLL
          for (int l = 0; l < 4; ++l) {
            Float& lane = lanes[turn][i][l];
            lane = warp.fma(key[2 * l], queries[i][2 * l], lane);
            lane = warp.fma(key[2 * l + 1], queries[i][2 * l + 1], lane);
          }
        }
      }
    }

    // The tree of matmul.h: lanes l+8 and l+4 are those of neighbours; all four have the sum.
    SLUICE_GPU Float sum(const Float (&lanes)[4]) const {
      Float v[4];
      SLUICE_GPU_UNROLL
      for (int l = 0; l < 4; ++l) {
        v[l] = lanes[l] + warp.shuffle_xor(lanes[l], 2);
        v[l] = v[l] + warp.shuffle_xor(v[l], 1);
      }
      return (v[0] + v[2]) + (v[1] + v[3]);
    }

    // Each of four neighbours stores the score of one turn.
    SLUICE_GPU void keep(std::uint32_t block) const {
      const AttentionRows& rows = args.rows;
      const Word turn_of = warp.lane() % Word(4), in_block = turn_of * Word(8) + warp.lane() / Word(4);
      const Word position = Word(block * AttentionRows::kBlock) + in_block;
      const std::uint32_t of_row = block - rows.first_block;
      SLUICE_GPU_UNROLL
      for (std::uint32_t i = 0; i < kQueries; ++i) {
        if (i >= count) continue;
        const std::uint32_t query = first + i;
        Float score = scores[0][i];
        SLUICE_GPU_UNROLL
        for (std::uint32_t turn = 1; turn < kTurns; ++turn)
          score = warp.select(turn_of == Word(turn), scores[turn][i], score);
        score = score * Float(args.scale);
        const PositionRange seen = rows.seen(query);
        const auto mask = position >= Word(seen.begin) && position < Word(seen.end);
        if (args.bias != nullptr) {
          const std::uint64_t own = std::uint64_t{rows.first_position} + rows.token(query);
          const float* const bias =
              args.bias + rows.head(kv_head, query) * args.bias_stride + (args.bias_center - own);
          score = score + warp.load_if(mask, bias, position, Float(0.0f));
        }
        warp.store_if(mask, rows.row_scores(kv_head, query) + of_row * AttentionRows::kBlock, in_block,
                      score);
        // Whatever the order: where a score is a NaN, all of the row become one.
        Float largest = warp.select(mask, score, Float(-__builtin_inff()));
        SLUICE_GPU_UNROLL
        for (std::uint32_t step = 16; step > 0; step /= 2)
          largest = warp.max(largest, warp.shuffle_xor(largest, step));
        warp.store_if(warp.lane() == Word(0), rows.row_largest(kv_head, query), Word(of_row), largest);
      }
    }
  };
};

}  // namespace sluice::kernels::gpu
