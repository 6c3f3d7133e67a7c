// attention.h over the Vec of an instruction set.
#pragma once

#include "kernels/attention_impl.h"
#include "kernels/dot-inl.h"
#include "kernels/exp-inl.h"
#include "kernels/weighted_sum-inl.h"

namespace sluice::kernels {
namespace {

// Scores of as many keys as fill groups of R, from position index p on. T: queries in registers at a time.
template <class Row, int R, int T>
void score_groups(const AttentionItem& a, const std::byte* keys, std::size_t count, const float* packed,
                  float* scores, std::size_t stride, std::size_t& p) {
  const std::size_t packed_stride = packed_floats_of(a.key_dim);
  const std::size_t ahead_rows = R + kAheadBytes / ((a.key_dim + 1) * Row::kBytes);
  for (; p + R <= count; p += R) {
    for (std::size_t i = 0; i < a.queries; i += T) {
      DotTile d{};
      d.rows = keys + p * a.keys.row_bytes;
      d.row_bytes = a.keys.row_bytes;
      d.cols = d.end = a.key_dim;
      d.x = packed + i * packed_stride;
      d.x_stride = packed_stride;
      d.ahead_bytes = i == 0 ? ahead_rows * a.keys.row_bytes : 0;
      d.out = scores + i * stride + p;
      d.out_stride = stride;
      dot_tokens<Row, R, T>(a.queries - i, d);
    }
  }
}

// scores[i*stride + p − begin] = dot of key p and query i, for p in [begin, end).
template <class Row>
void score(const AttentionItem& a, std::size_t begin, std::size_t end, const float* packed, float* scores,
           std::size_t stride) {
  constexpr int kAtOnce = kTokens < int{kQueriesPerItem} ? kTokens : int{kQueriesPerItem};
  const std::byte* keys = a.keys.data + begin * a.keys.row_bytes;
  std::size_t p = 0;
  if (a.queries <= kFewTokens) {
    score_groups<Row, kRowsForFew, kFewTokens>(a, keys, end - begin, packed, scores, stride, p);
  }
  score_groups<Row, kRows, kAtOnce>(a, keys, end - begin, packed, scores, stride, p);
  score_groups<Row, 1, kAtOnce>(a, keys, end - begin, packed, scores, stride, p);
}

inline void attention_item(const AttentionItem& a, std::size_t positions, float* scratch) {
  const std::size_t packed_stride = packed_floats_of(a.key_dim);
  const std::size_t stride = (positions + 15) / 16 * 16;
  float* packed = scratch;
  float* scores = packed + kQueriesPerItem * packed_stride;
  float* sums = scores + kQueriesPerItem * stride;
  const std::size_t last = a.queries - 1;
  for (std::size_t i = 0; i <= last; ++i) pack(a.q[i], a.key_dim, packed + i * packed_stride);

  // Keys that any of the queries sees; a query ignores the scores outside its own range.
  const std::size_t first = a.begin[0];
  with_element_type(a.keys.dtype,
                    [&](auto row) { score<decltype(row)>(a, first, a.end[last], packed, scores, stride); });

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
    total[i] = exp_and_sum(s, n);
  }

  // Values: what only earlier queries see, then what all see, then what only later ones see.
  const std::size_t common_begin = a.begin[last];
  const std::size_t common_end = a.end[0] > common_begin ? a.end[0] : common_begin;
  for (std::size_t i = 0; i < (last + 1) * a.value_dim; ++i) sums[i] = 0.0f;
  with_element_type(a.values.dtype, [&](auto row) {
    const auto sum = [&](std::size_t query, std::size_t queries, std::size_t begin, std::size_t end) {
      if (begin >= end) return;
      weighted_sum<decltype(row)>(a.values.data + begin * a.values.row_bytes, a.values.row_bytes, end - begin,
                                  a.value_dim, scores + query * stride + (begin - first), stride, queries,
                                  sums + query * a.value_dim, a.value_dim);
    };
    for (std::size_t i = 0; i <= last; ++i) {
      sum(i, 1, a.begin[i], a.end[i] < common_begin ? a.end[i] : common_begin);
    }
    sum(0, last + 1, common_begin, common_end);
    for (std::size_t i = 0; i <= last; ++i) sum(i, 1, common_end, a.end[i]);
  });

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
