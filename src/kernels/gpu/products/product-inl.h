// Products in the order of matmul.h on a GPU, of any format that is read row by row (word_rows-inl.h), and
// what stands between the products of an MLP.
#pragma once

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

// Writes what a product makes of its sums: `sums` of the output first + on and of token `token`. `mask`:
// lanes that have one; one lane of those that have the same.
template <class Warp>
SLUICE_GPU void put_output(const Warp& warp, const ProductItem& item, std::uint32_t first,
                           typename Warp::Word on, std::uint32_t token, typename Warp::Mask mask,
                           typename Warp::Float a, typename Warp::Float b) {
  using Float = typename Warp::Float;
  using Word = typename Warp::Word;
  const Word row = Word(first) + on;
  if (item.sides[0].bias != nullptr)
    a = a + warp.load_if(mask, item.sides[0].bias, row * Word(item.row_step), Float(0.0f));
  if (item.sides[1].bias != nullptr && is_paired(item.form))
    b = b + warp.load_if(mask, item.sides[1].bias, row * Word(item.row_step), Float(0.0f));
  float* const y = item.y + token * item.y_stride;
  if (item.form == ProductForm::kPlain) {
    warp.store_if(mask, y, row, a);
    return;
  }
  const Word place = row / Word(32) * Word(32) + row % Word(2) * Word(16) + row % Word(32) / Word(2);
  warp.store_if(mask, y, place, gated(warp, item, a, b));
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

template <class Format, int L, int R, int T>
struct ProductKernel {
  static_assert(R == 1 || R % 2 == 0);
  using Args = ProductItems;
  using Tile = ProductTile<L, R, T>;
  static constexpr int kBlocks = R == 8 || (R == 4 && Format::kLarge) ? 1 : T == 1 && R == 1 ? 3 : 2;

  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    const ProductItem& item = item_of(args, warp.index());
    const ProductTiles tiles = Tile::tiles(item);
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

   private:
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
      if constexpr (Row::kHalves != 0) {
        // So many units are read before the first of them is used.
        constexpr int kFull = T == 1 ? 32 : T < 8 ? 16 : 8;
        constexpr int kRoom = (R > 1 && Row::kWords > 1 ? kFull / 2 : kFull) / (L * R * Row::kWords);
        constexpr int kAhead = kRoom < 1 ? 1 : kRoom;
        const std::uint32_t units = item_.columns / (32 * Row::kHalves);
        std::uint32_t unit = 0;
        for (; unit + kAhead <= units; unit += kAhead) add_units<kAhead>(rows, x, unit);
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
