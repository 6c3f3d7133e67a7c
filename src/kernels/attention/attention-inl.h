// attention.h over the Vec of an instruction set.
#pragma once

#include "kernels/attention/attention_impl.h"
#include "kernels/elementwise/weighted_sum-inl.h"
#include "kernels/lanes/dot-inl.h"
#include "kernels/lanes/exp-inl.h"

namespace sluice::kernels {
namespace {

inline Vec load_up_to_16(const float* p, std::size_t n) { return n == 16 ? load(p) : load_first(p, n, 0.0f); }
inline void store_up_to_16(float* p, std::size_t n, Vec a) {
  if (n == 16) return store(p, a);
  store_first(p, n, a);
}

// Calls work(begin, end, row) for stretches of the positions [begin, end) whose rows follow one another from
// `row` on.
template <class Work>
inline void each_stretch(const CacheHead& cache, std::size_t begin, std::size_t end, const Work& work) {
  if (cache.blocks == nullptr) {
    if (begin < end) work(begin, end, begin);
    return;
  }
  while (begin < end) {
    const std::size_t block = begin / kCacheBlock;
    std::size_t next = block + 1;
    while (next * kCacheBlock < end && cache.blocks[next] == cache.blocks[next - 1] + 1) ++next;
    const std::size_t stop = next * kCacheBlock < end ? next * kCacheBlock : end;
    work(begin, stop, cache.blocks[block] * kCacheBlock + begin % kCacheBlock);
    begin = stop;
  }
}

// The keys and queries of one block of scores. The score of position p and query i goes to scores[i*stride +
// p], with p counted from `keys`.
struct ScoreBlock {
  const std::byte* keys;
  std::size_t row_bytes, count;
  std::size_t cols;
  const float* packed;
  std::size_t packed_stride, queries;
  float* scores;
  std::size_t stride;
};

// Scores of whole groups of R keys, from position index p on. T: queries that stay in registers.
template <class Row, int R, int T>
void score_groups(const ScoreBlock& b, std::size_t& p) {
  const std::size_t ahead_rows = R + kAheadBytes / ((b.cols + 1) * Row::kBytes);
  for (; p + R <= b.count; p += R) {
    for (std::size_t i = 0; i < b.queries; i += T) {
      DotTile d{};
      d.rows = b.keys + p * b.row_bytes;
      d.row_bytes = b.row_bytes;
      d.cols = d.end = b.cols;
      d.x = b.packed + i * b.packed_stride;
      d.x_stride = b.packed_stride;
      d.ahead_bytes = i == 0 ? ahead_rows * b.row_bytes : 0;
      d.out = b.scores + i * b.stride + p;
      d.out_stride = b.stride;
      dot_tokens<Row, R, T>(b.queries - i, d);
    }
  }
}

template <class Row>
void score(const ScoreBlock& b) {
  constexpr int kAtOnce = kTokens < int{kQueriesPerItem} ? kTokens : int{kQueriesPerItem};
  std::size_t p = 0;
  if (b.queries <= kFewTokens) score_groups<Row, kRowsForFew, kFewTokens>(b, p);
  score_groups<Row, kRows, kAtOnce>(b, p);
  score_groups<Row, 1, kAtOnce>(b, p);
}

// Scores of codes: group by group, some positions at a time. `first`: the row of the first key.
inline void score_codes(const ScoreBlock& all, const CacheHead& head, std::size_t first) {
  float dots[kQueriesPerItem * kScaledPositions];
  for (std::size_t begin = 0; begin < all.count; begin += kScaledPositions) {
    ScoreBlock b = all;
    b.count = all.count - begin < kScaledPositions ? all.count - begin : kScaledPositions;
    b.scores = dots;
    b.stride = kScaledPositions;
    for (std::size_t c = 0, g = 0; c < all.cols; c += kCacheGroup, ++g) {
      b.keys = all.keys + begin * all.row_bytes + c;
      b.cols = all.cols - c < kCacheGroup ? all.cols - c : kCacheGroup;
      b.packed = all.packed + c;
      score<I8>(b);
      const float* const scales = head.scales + g * head.scale_stride + first + begin;
      for (std::size_t i = 0; i < all.queries; ++i) {
        float* const out = all.scores + i * all.stride + begin;
        for (std::size_t p = 0; p < b.count; p += 16) {
          const std::size_t n = b.count - p < 16 ? b.count - p : 16;
          const Vec scale = load_up_to_16(scales + p, n);
          const Vec dot = load_up_to_16(dots + i * kScaledPositions + p, n);
          const Vec sum = g == 0 ? mul(scale, dot) : fma(scale, dot, load_up_to_16(out + p, n));
          store_up_to_16(out + p, n, sum);
        }
      }
    }
  }
}

// scores[i*stride + p − begin] = dot of key p and query i, for p in [begin, end).
inline void score_keys(const AttentionItem& a, std::size_t begin, std::size_t end, const float* packed,
                       float* scores, std::size_t stride) {
  each_stretch(a.keys, begin, end, [&](std::size_t from, std::size_t to, std::size_t first_row) {
    const ScoreBlock block{a.keys.data + first_row * a.keys.row_bytes,
                           a.keys.row_bytes,
                           to - from,
                           a.key_dim,
                           packed,
                           packed_floats_of(a.key_dim),
                           a.queries,
                           scores + (from - begin),
                           stride};
    if (a.keys.dtype == DType::kI8) return score_codes(block, a.keys, first_row);
    with_element_type(a.keys.dtype, [&](auto row) { score<decltype(row)>(block); });
  });
}

// The same sums as sum_values, of `positions` values in codes whose rows follow one another from `first` on.
inline void sum_codes(const AttentionItem& a, std::size_t first, std::size_t positions, std::size_t queries,
                      const float* weights, std::size_t stride, float* sums) {
  const std::byte* const rows = a.values.data + first * a.values.row_bytes;
  float scaled[kQueriesPerItem * kScaledPositions];
  for (std::size_t from = 0; from < positions; from += kScaledPositions) {
    const std::size_t count = positions - from < kScaledPositions ? positions - from : kScaledPositions;
    for (std::size_t c = 0, g = 0; c < a.value_dim; c += kCacheGroup, ++g) {
      const float* const scales = a.values.scales + g * a.values.scale_stride + first + from;
      for (std::size_t i = 0; i < queries; ++i)
        for (std::size_t p = 0; p < count; p += 16) {
          const std::size_t n = count - p < 16 ? count - p : 16;
          store_up_to_16(
              scaled + i * kScaledPositions + p, n,
              mul(load_up_to_16(weights + i * stride + from + p, n), load_up_to_16(scales + p, n)));
        }
      const std::size_t cols = a.value_dim - c < kCacheGroup ? a.value_dim - c : kCacheGroup;
      weighted_sum<I8>(rows + from * a.values.row_bytes + c, a.values.row_bytes, count, cols, scaled,
                       kScaledPositions, queries, sums + c, a.value_dim);
    }
  }
}

// sums[i*value_dim + c] += Σ_p weights[i*stride + p − begin] · value p [c], for p in [begin, end).
inline void sum_values(const AttentionItem& a, std::size_t begin, std::size_t end, std::size_t queries,
                       const float* weights, std::size_t stride, float* sums) {
  each_stretch(a.values, begin, end, [&](std::size_t from, std::size_t to, std::size_t first_row) {
    const float* const of_stretch = weights + (from - begin);
    if (a.values.dtype == DType::kI8)
      return sum_codes(a, first_row, to - from, queries, of_stretch, stride, sums);
    with_element_type(a.values.dtype, [&](auto row) {
      weighted_sum<decltype(row)>(a.values.data + first_row * a.values.row_bytes, a.values.row_bytes,
                                  to - from, a.value_dim, of_stretch, stride, queries, sums, a.value_dim);
    });
  });
}

inline void attention_item(const AttentionItem& a, std::size_t positions, float* scratch) {
  const std::size_t packed_stride = packed_floats_of(a.key_dim);
  const std::size_t stride = (positions + 15) / 16 * 16;
  float* packed = scratch;
  float* scores = packed + kQueriesPerItem * packed_stride;
  float* sums = scores + kQueriesPerItem * stride;
  const std::size_t last = a.queries - 1;
  for (std::size_t i = 0; i <= last; ++i) pack(a.q[i], a.key_dim, packed + i * packed_stride);

  // Keys that any of the queries sees; a query ignores scores outside its own range.
  const std::size_t first = a.begin[0];
  score_keys(a, first, a.end[last], packed, scores, stride);

  float total[kQueriesPerItem];
  const Vec scale = set1(a.scale);
  for (std::size_t i = 0; i <= last; ++i) {
    float* s = scores + i * stride + (a.begin[i] - first);
    const std::size_t n = a.end[i] - a.begin[i];
    std::size_t p = 0;
    if (const float* bias = a.bias[i]; bias != nullptr) {
      bias += a.begin[i];
      for (; p + 16 <= n; p += 16) store(s + p, add(mul(load(s + p), scale), load(bias + p)));
      if (p < n) {
        const Vec scaled = mul(load_first(s + p, n - p, 0.0f), scale);
        store_first(s + p, n - p, add(scaled, load_first(bias + p, n - p, 0.0f)));
      }
    } else {
      for (; p + 16 <= n; p += 16) store(s + p, mul(load(s + p), scale));
      if (p < n) store_first(s + p, n - p, mul(load_first(s + p, n - p, 0.0f), scale));
    }
    total[i] = exp_and_sum(s, n, a.sink[i]);
  }

  // Values in three parts: those that only earlier queries see, those that all see, those that only later
  // queries see.
  const std::size_t common_begin = a.begin[last];
  const std::size_t common_end = a.end[0] > common_begin ? a.end[0] : common_begin;
  for (std::size_t i = 0; i < (last + 1) * a.value_dim; ++i) sums[i] = 0.0f;
  const auto sum = [&](std::size_t query, std::size_t queries, std::size_t begin, std::size_t end) {
    sum_values(a, begin, end, queries, scores + query * stride + (begin - first), stride,
               sums + query * a.value_dim);
  };
  for (std::size_t i = 0; i <= last; ++i) {
    sum(i, 1, a.begin[i], a.end[i] < common_begin ? a.end[i] : common_begin);
  }
  sum(0, last + 1, common_begin, common_end);
  for (std::size_t i = 0; i <= last; ++i) sum(i, 1, common_end, a.end[i]);

  for (std::size_t i = 0; i <= last; ++i) {
    const Vec divisor = set1(total[i]);
    const float* sum = sums + i * a.value_dim;
    std::size_t c = 0;
    for (; c + 16 <= a.value_dim; c += 16) store(a.out[i] + c, div(load(sum + c), divisor));
    if (c < a.value_dim) {
      store_first(a.out[i] + c, a.value_dim - c, div(load_first(sum + c, a.value_dim - c, 0.0f), divisor));
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
