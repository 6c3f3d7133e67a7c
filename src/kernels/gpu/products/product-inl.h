// Products in the order of matmul.h on a GPU, of any format that is read row by row (word_rows-inl.h), and
// what stands between the products of an MLP.
#pragma once

#include <type_traits>

#include "kernels/gpu/products/gating-inl.h"
#include "kernels/gpu/products/product_items.h"
#include "kernels/gpu/products/sums-inl.h"

namespace sluice::kernels::gpu {

// The rows and tokens of a warp. Each group of 16/L lanes has a sum of its own, in R rows, or R/2 rows of two
// sides, by T tokens.
template <int L, int R, int T>
struct ProductTile {
  static constexpr std::uint32_t kGroups = 2 * L;

  SLUICE_GPU_HOST static constexpr std::uint32_t rows(ProductForm form) {
    return kGroups * static_cast<std::uint32_t>(is_paired(form) ? R / 2 : R);
  }
  SLUICE_GPU_HOST static constexpr ProductTiles tiles(const ProductItem& item) {
    return {ceil_div(item.rows, rows(item.form)), ceil_div(item.tokens, T)};
  }
};

// Where the warps of a kernel of many tokens work: twelve that follow each other, a block of the GPU, have
// four tiles of outputs by three of tokens.
template <std::uint32_t kRowTiles, std::uint32_t kTokenTiles>
struct BlockTiles {
  std::uint32_t rows, tokens;  // tiles
  static constexpr std::uint32_t kWarps = kRowTiles * kTokenTiles;

  SLUICE_GPU_HOST constexpr std::uint32_t row_blocks() const {
    return ceil_div(rows, tokens == 1 ? kWarps : kRowTiles);
  }
  SLUICE_GPU_HOST constexpr std::uint32_t warps() const {
    return tokens == 1 ? row_blocks() * kWarps : row_blocks() * ceil_div(tokens, kTokenTiles) * kWarps;
  }
  SLUICE_GPU_HOST constexpr std::uint32_t row_tile(std::uint32_t warp) const {
    return tokens == 1 ? warp : warp / kWarps % row_blocks() * kRowTiles + warp % kRowTiles;
  }
  SLUICE_GPU_HOST constexpr std::uint32_t token_tile(std::uint32_t warp) const {
    return tokens == 1 ? 0 : warp / kWarps / row_blocks() * kTokenTiles + warp % kWarps / kRowTiles;
  }
};

// Writes what a product makes of its sums: `sums` of the output first + on and of token `token`. `mask`:
// lanes that have one; of lanes that have the same sum, one. `later`: by how many tokens further, a small
// number.
template <class Warp>
SLUICE_GPU void put_output(const Warp& warp, const ProductItem& item, std::uint32_t first,
                           typename Warp::Word on, std::uint32_t token, typename Warp::Mask mask,
                           typename Warp::Float a, typename Warp::Float b,
                           typename Warp::Word later = typename Warp::Word(0)) {
  using Float = typename Warp::Float;
  using Word = typename Warp::Word;
  const Word row = Word(first) + on;
  if (item.sides[0].bias != nullptr)
    a = a + warp.load_if(mask, item.sides[0].bias, row * Word(item.row_step), Float(0.0f));
  if (item.sides[1].bias != nullptr && is_paired(item.form))
    b = b + warp.load_if(mask, item.sides[1].bias, row * Word(item.row_step), Float(0.0f));
  float* const y = item.y + token * item.y_stride;
  const Word token_at = later * Word(static_cast<std::uint32_t>(item.y_stride));
  if (item.form == ProductForm::kPlain) {
    warp.store_if(mask, y, token_at + row, a);
    return;
  }
  const Word place = row / Word(32) * Word(32) + row % Word(2) * Word(16) + row % Word(32) / Word(2);
  warp.store_if(mask, y, token_at + place, gated(warp, item, a, b));
}

// Ends a token of an arranged output with zeros; each output is 16 evens, then 16 odds.
template <class Warp>
SLUICE_GPU void put_end(const Warp& warp, const ProductItem& item, std::uint32_t token) {
  using Word = typename Warp::Word;
  const std::uint32_t end = arranged_columns(item.rows);
  for (std::uint32_t begin = item.rows; begin < end; begin += 32) {
    const Word row = Word(begin) + warp.lane();
    const Word place = row / Word(32) * Word(32) + row % Word(2) * Word(16) + row % Word(32) / Word(2);
    warp.store_if(row < Word(end), item.y + token * item.y_stride, place, typename Warp::Float(0.0f));
  }
}

// kAhead > 0: for many tokens; as many units of the rows are read ahead of those that are used, and with
// kReads a half of the activations.
template <class Format, int L, int R, int T, int kAhead = 0, int kReads = 0>
struct ProductKernel {
  static_assert(R == 1 || R % 2 == 0);
  using Args = ProductItems;
  using Tile = ProductTile<L, R, T>;
  static constexpr int kBlocks = kAhead != 0 || R == 8 || (R == 4 && Format::kLarge) ? 1
                                 : T == 1 && R == 1                                  ? 3
                                                                                     : 2;
  using Tiles = std::conditional_t<kAhead == 0, ProductTiles, BlockTiles<4, 3>>;
  static constexpr std::uint32_t kBlockWarps = kAhead == 0 ? 8 : 12;

  SLUICE_GPU_HOST static constexpr Tiles tiles_of(const ProductItem& item) {
    const ProductTiles tiles = Tile::tiles(item);
    return {tiles.rows, tiles.tokens};
  }

  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    const ProductItem& item = item_of(args, warp.index());
    const Tiles tiles = tiles_of(item);
    const auto index = static_cast<std::uint32_t>(warp.index() - item.first_warp);
    const std::uint32_t row_tile = tiles.row_tile(index), token_tile = tiles.token_tile(index);
    if (row_tile < tiles.rows && token_tile < tiles.tokens)
      Sums<Warp>(warp, item, row_tile * Tile::rows(item.form), token_tile * T).compute();
  }

 private:
  template <class Warp>
  class Sums {
   public:
    using Float = typename Warp::Float;
    using Word = typename Warp::Word;
    using Row = typename Format::template Row<Warp, L>;

    SLUICE_GPU Sums(const Warp& warp, const ProductItem& item, std::uint32_t first, std::uint32_t token)
        : warp_(warp),
          item_(item),
          first_(first),
          token_(token),
          group_(warp.lane() / Word(16 / L)),
          thread_(warp.lane() % Word(16 / L)) {
      SLUICE_GPU_UNROLL
      for (int r = 0; r < R; ++r) {
        SLUICE_GPU_UNROLL
        for (int t = 0; t < T; ++t) {
          SLUICE_GPU_UNROLL
          for (int i = 0; i < L; ++i) sums_[r][t][i] = Float(0.0f);
        }
      }
    }

    SLUICE_GPU void compute() {
      multiply();
      if constexpr (kAhead != 0) {
        put_all();
      } else {
        put_each();
      }
    }

   private:
    SLUICE_GPU void put_each() {
      const std::uint32_t last = item_.rows - 1;
      const auto has_row = thread_ == Word(0);
      const bool paired = R > 1 && is_paired(item_.form);
      SLUICE_GPU_UNROLL
      for (int t = 0; t < T; ++t) {
        if (token_ + t >= item_.tokens) break;
        SLUICE_GPU_UNROLL
        for (int r = 0; r < R; ++r) {
          if (paired && r % 2 != 0) continue;
          const Word on = output(r, paired);
          const Float a = sum_lanes(warp_, sums_[r][t]);
          const Float b = paired ? sum_lanes(warp_, sums_[r + 1 < R ? r + 1 : r][t]) : a;
          put_output(warp_, item_, first_, on, token_ + t, has_row && on <= Word(last - first_), a, b);
        }
        if (item_.form != ProductForm::kPlain && first_ + Tile::rows(item_.form) > last)
          put_end(warp_, item_, token_ + t);
      }
    }

    // Sums are numbered ((r/2)·T + t)·2 + r%2. With each step of the tree (sums-inl.h) a lane keeps half of
    // them, so that each has a few of the outputs at the end, those of both sides together.
    SLUICE_GPU void put_all() {
      constexpr int kAll = R * T;
      static_assert(R % 2 == 0 && L == 1);
      Float sums[kAll];
      SLUICE_GPU_UNROLL
      for (int i = 0; i < kAll; ++i) sums[i] = sums_[i / (2 * T) * 2 + i % 2][i / 2 % T][0];
      // Lanes whose bit b is set have kept the sums whose bit is.
      constexpr int kKept = kAll / 16 < 2 ? 2 : kAll / 16;
      Word number(0);
      auto writes = thread_ < Word(16);
      int count = kAll;
      SLUICE_GPU_UNROLL
      for (std::uint32_t step = 8; step > 0; step /= 2) {
        const auto upper = (thread_ & Word(step)) != Word(0);
        if (count > kKept) {
          count /= 2;
          number = number + warp_.select(upper, Word(static_cast<std::uint32_t>(count)), Word(0));
          SLUICE_GPU_UNROLL
          for (int i = 0; i < kAll / 2; ++i) {
            if (i >= count) break;
            const Float mine = warp_.select(upper, sums[count + i], sums[i]),
                        other = warp_.select(upper, sums[i], sums[count + i]);
            sums[i] = mine + warp_.shuffle_xor(other, step);
          }
        } else {
          writes = writes && !upper;
          SLUICE_GPU_UNROLL
          for (int i = 0; i < kKept; ++i) sums[i] = sums[i] + warp_.shuffle_xor(sums[i], step);
        }
      }
      const std::uint32_t last = item_.rows - 1;
      const bool paired = is_paired(item_.form);
      const Word tokens(item_.tokens - token_);
      SLUICE_GPU_UNROLL
      for (int i = 0; i < kKept; i += 2) {
        const Word of = number + Word(static_cast<std::uint32_t>(i)),
                   t = of / Word(2) % Word(static_cast<std::uint32_t>(T)),
                   r = of / Word(static_cast<std::uint32_t>(2 * T)) * Word(2);
        SLUICE_GPU_UNROLL
        for (int k = 0; k < 2; ++k) {
          if (paired && k != 0) break;
          const Word slot = paired ? r / Word(2) : r + Word(static_cast<std::uint32_t>(k));
          const Word on = slot * Word(Tile::kGroups) + group_;
          put_output(warp_, item_, first_, on, token_, writes && t < tokens && on <= Word(last - first_),
                     sums[i + k], sums[i + 1], t);
        }
      }
      if (item_.form == ProductForm::kPlain || first_ + Tile::rows(item_.form) <= last) return;
      SLUICE_GPU_LOOP
      for (std::uint32_t token = token_; token < token_ + T && token < item_.tokens; ++token)
        put_end(warp_, item_, token);
    }

    // Which output of this warp slot r makes.
    SLUICE_GPU Word output(int r, bool paired) const {
      return Word((paired ? static_cast<std::uint32_t>(r) / 2 : static_cast<std::uint32_t>(r)) *
                  Tile::kGroups) +
             group_;
    }

    SLUICE_GPU Row row(int r) const {
      const bool paired = R > 1 && is_paired(item_.form);
      const Word most(item_.rows - 1 - first_), on = output(r, paired);
      return Row(warp_, item_, item_.sides[paired ? r % 2 : 0], std::uint64_t{first_} * item_.row_step,
                 warp_.select(on < most, on, most) * Word(item_.row_step), thread_);
    }

    SLUICE_GPU void multiply() {
      if constexpr (R == 1) {
        const Row rows[1] = {row(0)};
        multiply(rows);
      } else if constexpr (R == 2) {
        const Row rows[2] = {row(0), row(1)};
        multiply(rows);
      } else if constexpr (R == 4) {
        const Row rows[4] = {row(0), row(1), row(2), row(3)};
        multiply(rows);
      } else {
        static_assert(R == 8);
        const Row rows[8] = {row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)};
        multiply(rows);
      }
    }

    SLUICE_GPU void multiply(const Row (&rows)[R]) {
      const float* x[T];
      const std::uint32_t floats = arranged_columns(item_.columns);
      SLUICE_GPU_UNROLL
      for (int t = 0; t < T; ++t) {
        const std::uint32_t token = token_ + t < item_.tokens ? token_ + t : item_.tokens - 1;
        x[t] = item_.x + std::uint64_t{token} * floats;
      }
      std::uint32_t halves = 0;
      if constexpr (kAhead != 0) {
        halves = add_ahead(rows, x);
      } else if constexpr (Row::kHalves != 0) {
        // This many units are read before the first of them is used.
        constexpr int kFull = T == 1 ? 32 : T < 8 ? 16 : 8;
        constexpr int kRoom = (R > 1 && Row::kWords > 1 ? kFull / 2 : kFull) / (L * R * Row::kWords);
        constexpr int kUnits = kRoom < 1 ? 1 : kRoom > 16 ? 16 : kRoom;
        const std::uint32_t units = item_.columns / (32 * Row::kHalves);
        std::uint32_t unit = 0;
        for (; unit + kUnits <= units; unit += kUnits) add_units<kUnits>(rows, x, unit);
        for (; unit < units; ++unit) add_units<1>(rows, x, unit);
        halves = units * Row::kHalves;
      }
      for (; halves < floats / 32; ++halves) {
        Float even[R][L], odd[R][L];
        SLUICE_GPU_UNROLL
        for (int r = 0; r < R; ++r) rows[r].last_numbers(warp_, halves, even[r], odd[r]);
        add_half(even, odd, x, halves);
      }
    }

    // Activations of a half.
    struct Half {
      Float even[T], odd[T];
    };
    // What is read ahead.
    struct Ahead {
      typename Row::Cursor rows[R];
      typename Warp::Place x[T];
    };
    using Units = typename Row::Raw[kAhead == 0 ? 1 : kAhead][R];
    static constexpr int kStep = kAhead * Row::kHalves;  // halves

    SLUICE_GPU void load(const Ahead& ahead, Units& units, int first) {
      SLUICE_GPU_UNROLL
      for (int n = 0; n < kAhead; ++n) {
        SLUICE_GPU_UNROLL
        for (int r = 0; r < R; ++r) units[n][r] = Row::load(warp_, ahead.rows[r], first + n);
      }
    }
    SLUICE_GPU void load(const Ahead& ahead, Half& of, int half) {
      SLUICE_GPU_UNROLL
      for (int t = 0; t < T; ++t) {
        of.even[t] = warp_.template load_floats<1>(ahead.x[t], 128 * half).of[0];
        of.odd[t] = warp_.template load_floats<1>(ahead.x[t], 128 * half + 64).of[0];
      }
    }
    SLUICE_GPU void advance_rows(Ahead& ahead, std::uint32_t units) {
      SLUICE_GPU_UNROLL
      for (int r = 0; r < R; ++r) Row::advance(warp_, ahead.rows[r], units);
    }
    SLUICE_GPU void advance_x(Ahead& ahead, std::uint32_t units) {
      SLUICE_GPU_UNROLL
      for (int t = 0; t < T; ++t) warp_.advance(ahead.x[t], units * Row::kHalves * 128);
    }

    // Adds some units, which begin `on` halves from the place in x. kReads: `now` are the activations of the
    // first half; becomes those of the half behind the last one.
    SLUICE_GPU void add_step(const Row (&rows)[R], Ahead& ahead, const Units& units, Half& now, int on) {
      SLUICE_GPU_UNROLL
      for (int h = 0; h < kStep; ++h) {
        if constexpr (kReads != 0) {
          Half next;
          load(ahead, next, on + h + 1);
          add_half(rows, units[h / Row::kHalves], h % Row::kHalves, now);
          now = next;
        } else {
          load(ahead, now, on + h);
          add_half(rows, units[h / Row::kHalves], h % Row::kHalves, now);
        }
      }
    }
    // The same; at the end x is `forward` units later.
    SLUICE_GPU void add_last_step(const Row (&rows)[R], Ahead& ahead, const Units& units, Half& now, int on,
                                  std::uint32_t forward) {
      SLUICE_GPU_UNROLL
      for (int h = 0; h < kStep; ++h) {
        Half next;
        if constexpr (kReads == 0) load(ahead, now, on + h);
        if (h + 1 == kStep) advance_x(ahead, forward);
        if constexpr (kReads != 0) load(ahead, next, h + 1 == kStep ? 0 : on + h + 1);
        add_half(rows, units[h / Row::kHalves], h % Row::kHalves, now);
        if constexpr (kReads != 0) now = next;
      }
    }

    // Returns how many halves were added.
    SLUICE_GPU std::uint32_t add_ahead(const Row (&rows)[R], const float* const (&x)[T]) {
      const std::uint32_t units = item_.columns / (32 * Row::kHalves);
      const std::uint32_t steps = units / kAhead;
      if (steps != 0) {
        Ahead ahead;
        SLUICE_GPU_UNROLL
        for (int r = 0; r < R; ++r) ahead.rows[r] = rows[r].cursor(warp_);
        SLUICE_GPU_UNROLL
        for (int t = 0; t < T; ++t) ahead.x[t] = warp_.place(x[t], thread_ * Word(4));
        Units even, odd;
        Half now;
        load(ahead, even, 0);
        if constexpr (kReads != 0) load(ahead, now, 0);
        std::uint32_t step = 0;
        SLUICE_GPU_LOOP
        for (; step + 2 <= steps; step += 2) {
          // Behind the last step these are read again, so that nothing else is.
          const std::uint32_t forward = step + 2 < steps ? 2 * kAhead : 0;
          load(ahead, odd, kAhead);
          add_step(rows, ahead, even, now, 0);
          advance_rows(ahead, forward);
          load(ahead, even, 0);
          add_last_step(rows, ahead, odd, now, kStep, forward);
        }
        if (step < steps) add_last_step(rows, ahead, even, now, 0, 0);
      }
      SLUICE_GPU_LOOP
      for (std::uint32_t unit = steps * kAhead; unit < units; ++unit) add_units<1>(rows, x, unit);
      return units * Row::kHalves;
    }

    SLUICE_GPU void add_half(const Row (&rows)[R], const typename Row::Raw (&raw)[R], int h, const Half& of) {
      SLUICE_GPU_UNROLL
      for (int r = 0; r < R; ++r) {
        Float even[L], odd[L];
        rows[r].numbers(warp_, raw[r], h, even, odd);
        SLUICE_GPU_UNROLL
        for (int t = 0; t < T; ++t) {
          SLUICE_GPU_UNROLL
          for (int i = 0; i < L; ++i) {
            sums_[r][t][i] = warp_.fma(even[i], of.even[t], sums_[r][t][i]);
            sums_[r][t][i] = warp_.fma(odd[i], of.odd[t], sums_[r][t][i]);
          }
        }
      }
    }

    template <int N>
    SLUICE_GPU void add_units(const Row (&rows)[R], const float* const (&x)[T], std::uint32_t unit) {
      typename Row::Raw raw[N][R];
      SLUICE_GPU_UNROLL
      for (int n = 0; n < N; ++n) {
        SLUICE_GPU_UNROLL
        for (int r = 0; r < R; ++r) raw[n][r] = rows[r].load(warp_, unit + n);
      }
      warp_.sync();  // all of these are asked for before the first is used
      SLUICE_GPU_UNROLL
      for (int n = 0; n < N; ++n) {
        SLUICE_GPU_UNROLL
        for (int h = 0; h < Row::kHalves; ++h) {
          Float even[R][L], odd[R][L];
          SLUICE_GPU_UNROLL
          for (int r = 0; r < R; ++r) rows[r].numbers(warp_, raw[n][r], h, even[r], odd[r]);
          add_half(even, odd, x, (unit + n) * Row::kHalves + h);
        }
      }
    }

    SLUICE_GPU void add_half(const Float (&even)[R][L], const Float (&odd)[R][L], const float* const (&x)[T],
                             std::uint32_t half) {
      SLUICE_GPU_UNROLL
      for (int t = 0; t < T; ++t) {
        const float* const here = x[t] + std::size_t{half} * 32;
        const auto x_even = warp_.template load_floats<L>(here, thread_ * Word(L)),
                   x_odd = warp_.template load_floats<L>(here + 16, thread_ * Word(L));
        SLUICE_GPU_UNROLL
        for (int r = 0; r < R; ++r) {
          SLUICE_GPU_UNROLL
          for (int i = 0; i < L; ++i) {
            sums_[r][t][i] = warp_.fma(even[r][i], x_even.of[i], sums_[r][t][i]);
            sums_[r][t][i] = warp_.fma(odd[r][i], x_odd.of[i], sums_[r][t][i]);
          }
        }
      }
    }

    const Warp& warp_;
    const ProductItem& item_;
    const std::uint32_t first_, token_;
    const Word group_, thread_;
    Float sums_[R][T][L];
  };
};

}  // namespace sluice::kernels::gpu
