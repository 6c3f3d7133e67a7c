#include "kernels/attention/attention.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/machine/thread_pool.h"
#include "kernels/test_data.h"

namespace sluice::kernels {
namespace {

struct Case {
  AttentionShape shape;
  std::size_t tokens, first_position;
  bool latent;  // one kv head, values are the first value_dim elements of the key row (absorbed MLA)
  std::vector<float> bias = {};  // (heads, center + positions()); empty: none
  std::size_t center = 0;
  std::vector<float> sinks = {};  // (heads); empty: none

  std::size_t positions() const { return std::max(first_position + tokens, shape.visible); }
  std::size_t end(std::size_t token) const {
    return shape.visible != 0 ? shape.visible : first_position + token + 1;
  }
  ScoreBias score_bias() const {
    return bias.empty() ? ScoreBias{} : ScoreBias{bias.data(), center + positions(), center};
  }
  Sinks sinks_of() const { return sinks.empty() ? nullptr : sinks.data(); }
};

struct Cache {
  std::vector<std::byte> keys, values;
  std::vector<float> key_scales, value_scales;  // for I8
  CacheView key_view, value_view;
};

std::string name(const Case& c) {
  return ::testing::PrintToString(c.shape.heads) + " heads, " + ::testing::PrintToString(c.shape.kv_heads) +
         " kv, dims " + ::testing::PrintToString(c.shape.key_dim) + " " +
         ::testing::PrintToString(c.shape.value_dim) + ", window " +
         ::testing::PrintToString(c.shape.window) + (c.sinks.empty() ? "" : ", sinks") + ", tokens " +
         ::testing::PrintToString(c.tokens) + " from " + ::testing::PrintToString(c.first_position);
}

// Stores rows of `numbers`, (positions, heads × stride), as a cache keeps them.
void keep(std::mt19937_64& random, const std::vector<float>& numbers, std::size_t positions,
          std::size_t heads, std::size_t stride, DType dtype, std::vector<std::byte>& bytes,
          std::vector<float>& scales, CacheView& view) {
  if (dtype == DType::kI8) {
    const std::size_t scale_stride = positions + random() % 3;
    bytes.resize(numbers.size());
    scales.resize(heads * cache_groups(stride) * scale_stride);
    for (std::size_t p = 0; p < positions; ++p)
      store_cache(&numbers[p * heads * stride],
                  {&bytes[p * heads * stride], dtype, heads, stride, &scales[p], scale_stride});
    view.scales = scales.data();
    view.scale_stride = scale_stride;
  } else {
    bytes = encode(numbers, dtype);
  }
  view.data = bytes.data();
  view.dtype = dtype;
  view.row_elements = heads * stride;
  view.head_stride = stride;
}

Cache make_cache(std::mt19937_64& random, const Case& c, DType dtype) {
  const std::size_t positions = c.positions();
  Cache cache;
  if (c.latent) {
    keep(random, normal_floats(random, positions * c.shape.key_dim), positions, 1, c.shape.key_dim, dtype,
         cache.keys, cache.key_scales, cache.key_view);
    cache.value_view = cache.key_view;
    return cache;
  }
  const std::size_t heads = c.shape.kv_heads, key_stride = c.shape.key_dim + random() % 3,
                    value_stride = c.shape.value_dim + random() % 3;
  keep(random, normal_floats(random, positions * heads * key_stride), positions, heads, key_stride, dtype,
       cache.keys, cache.key_scales, cache.key_view);
  keep(random, normal_floats(random, positions * heads * value_stride), positions, heads, value_stride, dtype,
       cache.values, cache.value_scales, cache.value_view);
  return cache;
}

// Element d of a head's row.
double number(const CacheView& cache, std::size_t position, std::size_t head, std::size_t d) {
  const std::size_t i = position * cache.row_elements + head * cache.head_stride + d;
  if (cache.dtype != DType::kI8) return double{decode(cache.data, cache.dtype, i)};
  const std::size_t group = head * cache_groups(cache.head_stride) + d / kCacheGroup;
  return double{static_cast<float>(static_cast<std::int8_t>(cache.data[i]))} *
         double{cache.scales[group * cache.scale_stride + position]};
}

std::vector<float> attend(const Context& ctx, const Case& c, std::span<const float> q, const CacheView& keys,
                          const CacheView& values) {
  const unsigned threads = ctx.pool == nullptr ? 1 : ctx.pool->threads();
  std::vector<float> scratch(threads * attention_scratch_floats(c.shape, c.positions()));
  std::vector<float> out(c.tokens * c.shape.heads * c.shape.value_dim, -1.0f);
  attention(ctx, c.shape, q.data(), c.tokens, c.first_position, keys, values, out.data(), scratch.data(),
            c.score_bias(), c.sinks_of());
  return out;
}

std::vector<Case> cases(std::mt19937_64& random) {
  std::vector<Case> all;
  for (int i = 0; i < 120; ++i) {
    Case c{};
    c.shape.kv_heads = 1 + random() % 4;
    c.shape.heads = c.shape.kv_heads * (1 + random() % 6);
    c.shape.key_dim = 1 + random() % 140;
    c.shape.value_dim = 1 + random() % 140;
    c.shape.scale = 1.0f / std::sqrt(static_cast<float>(c.shape.key_dim));
    c.shape.window = random() % 2 * (1 + random() % 30);
    c.tokens = 1 + random() % 12;
    c.first_position = random() % 3 == 0 ? 0 : random() % 100;
    c.latent = random() % 4 == 0;
    if (c.latent) {
      c.shape.kv_heads = 1;
      c.shape.key_dim = c.shape.value_dim + random() % 20;
    }
    if (random() % 3 == 0) {
      c.shape.window = 0;
      c.shape.visible = 1 + random() % 90;
    }
    if (random() % 2 == 0) {
      c.center = c.positions() - 1 + random() % 3;
      c.bias = normal_floats(random, c.shape.heads * (c.center + c.positions()));
    }
    if (i % 3 == 0) {  // some far above the scores, some far below
      c.sinks = normal_floats(random, c.shape.heads);
      for (float& sink : c.sinks) sink *= 12;
    }
    all.push_back(c);
  }
  all.push_back({{16, 16, 128, 128, 0.088f, 0}, 1, 300, false});
  all.push_back({{32, 4, 128, 128, 0.088f, 0}, 3, 40, false});
  all.push_back({{16, 1, 576, 512, 0.07f, 0}, 2, 70, true});
  all.push_back({{5, 5, 80, 80, 0.11f, 1}, 9, 0, false});  // each position sees itself only
  return all;
}

TEST(Attention, EveryInstructionSetHasTheBitsOfScalar) {
  std::mt19937_64 random = test_random(1);
  for (const Case& c : cases(random)) {
    for (const DType dtype : {DType::kBF16, DType::kF32, DType::kI8}) {
      const Cache cache = make_cache(random, c, dtype);
      const std::vector<float> q = normal_floats(random, c.tokens * c.shape.heads * c.shape.key_dim);
      const std::vector<float> expected =
          attend({nullptr, Isa::kScalar}, c, q, cache.key_view, cache.value_view);
      for (const Isa isa : vector_isas()) {
        EXPECT_TRUE(same_bits(expected, attend({nullptr, isa}, c, q, cache.key_view, cache.value_view)))
            << isa_name(isa) << ' ' << dtype_name(dtype) << ' ' << name(c);
      }
    }
  }
}

// The rows of a cache, moved into blocks of a larger one. What no block of the cache holds is not a number.
struct Blocks {
  std::vector<std::uint32_t> table;
  std::vector<std::byte> rows;
  std::vector<float> scales;
  CacheView view;
};

Blocks in_blocks(const CacheView& from, std::size_t positions, std::size_t groups,
                 const std::vector<std::uint32_t>& table) {
  const std::size_t all = (*std::ranges::max_element(table) + 1) * kCacheBlock;
  const std::size_t row = from.row_elements * dtype_bytes(from.dtype);
  Blocks to{table, std::vector<std::byte>(all * row, std::byte{0xff}),
            std::vector<float>(groups * all, std::nanf("")), from};
  for (std::size_t p = 0; p < positions; ++p) {
    const std::size_t r = table[p / kCacheBlock] * kCacheBlock + p % kCacheBlock;
    std::copy_n(from.data + p * row, row, to.rows.data() + r * row);
    for (std::size_t g = 0; from.scales != nullptr && g < groups; ++g)
      to.scales[g * all + r] = from.scales[g * from.scale_stride + p];
  }
  to.view.data = to.rows.data();
  to.view.blocks = to.table.data();
  if (from.scales != nullptr) to.view.scales = to.scales.data();
  to.view.scale_stride = all;
  return to;
}

TEST(Attention, WhereTheBlocksOfACacheLieDoesNotShow) {
  std::mt19937_64 random = test_random(8);
  std::size_t several = 0;
  for (Case c : cases(random)) {
    if (random() % 2 == 0) c.first_position += random() % 700;  // codes are taken 256 at a time
    if (!c.bias.empty()) {
      c.center = c.positions() - 1;
      c.bias = normal_floats(random, c.shape.heads * (c.center + c.positions()));
    }
    std::vector<std::uint32_t> table((c.positions() + kCacheBlock - 1) / kCacheBlock + random() % 3);
    std::iota(table.begin(), table.end(), static_cast<std::uint32_t>(random() % 3));
    // Stretches of consecutive blocks, and blocks alone.
    for (std::size_t i = 0; i < random() % 4; ++i)
      std::swap(table[random() % table.size()], table[random() % table.size()]);
    if (table.empty()) continue;
    several += table.size() > 1 ? 1 : 0;
    for (const DType dtype : {DType::kBF16, DType::kF32, DType::kI8}) {
      const Cache cache = make_cache(random, c, dtype);
      const auto moved = [&](const CacheView& view) {
        return in_blocks(view, c.positions(), c.shape.kv_heads * cache_groups(view.head_stride), table);
      };
      const Blocks keys = moved(cache.key_view), values = moved(cache.value_view);
      const std::vector<float> q = normal_floats(random, c.tokens * c.shape.heads * c.shape.key_dim);
      for (const Isa isa : available_isas())
        EXPECT_TRUE(same_bits(attend({nullptr, isa}, c, q, cache.key_view, cache.value_view),
                              attend({nullptr, isa}, c, q, keys.view, values.view)))
            << isa_name(isa) << ' ' << dtype_name(dtype) << ' ' << name(c);
    }
  }
  EXPECT_GT(several, 30u);
}

TEST(Attention, ThreadsAndChunksDoNotShow) {
  std::mt19937_64 random = test_random(2);
  std::vector<Case> some = {
      Case{{12, 4, 64, 64, 0.125f, 0}, 23, 5, false}, Case{{6, 6, 48, 40, 0.14f, 9}, 23, 0, false},
      Case{{16, 1, 96, 64, 0.1f, 0}, 19, 31, true}, Case{{5, 5, 12, 12, 1.0f, 0, 23}, 23, 0, false},
      Case{{5, 5, 12, 12, 1.0f, 0}, 21, 4, false}};
  some[1].sinks = normal_floats(random, 6);
  for (Case& c : std::span(some).subspan(3)) {
    c.center = c.positions() - 1;
    c.bias = normal_floats(random, c.shape.heads * (c.center + c.positions()));
  }
  for (const Case& c : some) {
    const Cache cache = make_cache(random, c, DType::kBF16);
    const std::size_t q_row = c.shape.heads * c.shape.key_dim;
    const std::vector<float> q = normal_floats(random, c.tokens * q_row);
    for (const Isa isa : available_isas()) {
      const std::vector<float> whole = attend({nullptr, isa}, c, q, cache.key_view, cache.value_view);
      for (unsigned threads = 1; threads <= 3; ++threads) {
        ThreadPool pool(threads);
        EXPECT_TRUE(same_bits(whole, attend({&pool, isa}, c, q, cache.key_view, cache.value_view)));
        for (const std::size_t chunk : {1, 3, 8}) {
          std::vector<float> parts;
          for (std::size_t t = 0; t < c.tokens; t += chunk) {
            const std::size_t tokens = std::min(chunk, c.tokens - t);
            std::vector<float> out(tokens * c.shape.heads * c.shape.value_dim);
            std::vector<float> scratch(threads * attention_scratch_floats(c.shape, c.positions()));
            attention({&pool, isa}, c.shape, q.data() + t * q_row, tokens, c.first_position + t,
                      cache.key_view, cache.value_view, out.data(), scratch.data(), c.score_bias(),
                      c.sinks_of());
            parts.insert(parts.end(), out.begin(), out.end());
          }
          EXPECT_TRUE(same_bits(whole, parts)) << name(c) << ", chunks of " << chunk;
        }
      }
    }
  }
}

TEST(Attention, WithinTheErrorBoundOfDoublePrecision) {
  std::mt19937_64 random = test_random(3);
  for (const Case& c : cases(random)) {
    for (const DType dtype : {DType::kBF16, DType::kF32, DType::kI8}) {
      const Cache cache = make_cache(random, c, dtype);
      const AttentionShape& s = c.shape;
      const std::vector<float> q = normal_floats(random, c.tokens * s.heads * s.key_dim);
      const std::vector<float> out = attend({nullptr, best_isa()}, c, q, cache.key_view, cache.value_view);
      for (std::size_t t = 0; t < c.tokens; ++t) {
        for (std::size_t h = 0; h < s.heads; ++h) {
          const std::size_t kv = h / (s.heads / s.kv_heads), position = c.first_position + t;
          const std::size_t begin = s.window == 0 || position + 1 < s.window ? 0 : position + 1 - s.window;
          const float* query = &q[(t * s.heads + h) * s.key_dim];
          std::vector<double> score;
          double worst_score = 0;  // Σ|product| of the largest score, for the error bound
          const std::size_t end = c.end(t);
          for (std::size_t p = begin; p < end; ++p) {
            double sum = 0, norm = 0;
            for (std::size_t d = 0; d < s.key_dim; ++d) {
              const double product = double{query[d]} * number(cache.key_view, p, kv, d);
              sum += product;
              norm += std::fabs(product);
            }
            const ScoreBias bias = c.score_bias();
            const double offset = bias.data == nullptr
                                      ? 0.0
                                      : double{bias.data[h * bias.head_stride + bias.center + p - position]};
            score.push_back(sum * double{s.scale} + offset);
            worst_score = std::max(worst_score, norm * double{s.scale} + std::fabs(offset));
          }
          double largest = *std::max_element(score.begin(), score.end());
          if (!c.sinks.empty()) largest = std::max(largest, double{c.sinks[h]});
          double total = c.sinks.empty() ? 0 : std::exp(double{c.sinks[h]} - largest);
          for (double& v : score) total += v = std::exp(v - largest);
          for (std::size_t d = 0; d < s.value_dim; ++d) {
            double sum = 0, norm = 0;
            for (std::size_t p = begin; p < end; ++p) {
              const double term = score[p - begin] / total * number(cache.value_view, p, kv, d);
              sum += term;
              norm += std::fabs(term);
            }
            // Relative error of each weight: that of its score and of the maximum (dot, scale, subtraction:
            // absolute, made relative by exp), of exp (2 ulp = 4 eps) and of the two sums.
            const double n = static_cast<double>(score.size());
            // Groups of codes add one rounding each, and one for the weight.
            const double groups = dtype == DType::kI8 ? static_cast<double>(cache_groups(s.key_dim)) + 1 : 0;
            const double in_scores = 2 * (static_cast<double>(s.key_dim) / 16 + 10 + groups) * worst_score;
            const double bound = (2 * in_scores + 9 + n + n / 16 + 6) * 0x1p-24 * norm;
            EXPECT_NEAR(out[(t * s.heads + h) * s.value_dim + d], sum, bound + 1e-30) << name(c);
          }
        }
      }
    }
  }
}

TEST(Attention, OneVisiblePositionReturnsItsValue) {
  std::mt19937_64 random = test_random(4);
  const Case c{{2, 2, 16, 24, 0.25f, 1}, 5, 3, false};
  const Cache cache = make_cache(random, c, DType::kF32);
  const std::vector<float> q = normal_floats(random, c.tokens * 2 * 16);
  for (const Isa isa : available_isas()) {
    const std::vector<float> out = attend({nullptr, isa}, c, q, cache.key_view, cache.value_view);
    for (std::size_t t = 0; t < c.tokens; ++t) {
      for (std::size_t h = 0; h < 2; ++h) {
        for (std::size_t d = 0; d < 24; ++d) {
          const std::size_t i =
              (3 + t) * cache.value_view.row_elements + h * cache.value_view.head_stride + d;
          EXPECT_EQ(out[(t * 2 + h) * 24 + d], decode(cache.values.data(), DType::kF32, i));
        }
      }
    }
  }
}

// With equal scores, n positions and a sink of the same score weigh 1 / (n + 1) each.
TEST(Attention, ASinkTakesItsShareAndHasNoValue) {
  std::mt19937_64 random = test_random(9);
  Case c{{2, 1, 16, 8, 1.0f, 4}, 1, 9, false};
  c.sinks = {0.0f, 1e4f};
  const Cache cache = make_cache(random, c, DType::kF32);
  const std::vector<float> q(2 * 16, 0.0f);  // all scores are 0
  for (const Isa isa : available_isas()) {
    const std::vector<float> out = attend({nullptr, isa}, c, q, cache.key_view, cache.value_view);
    for (std::size_t d = 0; d < 8; ++d) {
      double sum = 0;
      for (std::size_t p = 6; p < 10; ++p) sum += number(cache.value_view, p, 0, d);
      EXPECT_NEAR(out[d], sum / 5, 1e-6) << isa_name(isa);
      EXPECT_EQ(out[8 + d], 0.0f) << "the sink outweighs everything";
    }
  }
}

TEST(Attention, HiddenPositionsDoNotShowEvenIfTheyAreNotNumbers) {
  std::mt19937_64 random = test_random(5);
  const Case c{{4, 2, 32, 32, 0.2f, 6}, 4, 10, false};
  Cache cache = make_cache(random, c, DType::kF32);
  const std::vector<float> q = normal_floats(random, c.tokens * 4 * 32);
  for (const Isa isa : available_isas()) {
    const std::vector<float> whole = attend({nullptr, isa}, c, q, cache.key_view, cache.value_view);
    Cache spoiled = cache;  // only the first query sees position 5, only the last one sees 13
    for (const std::size_t position : {5, 13}) {
      for (auto* bytes : {&spoiled.keys, &spoiled.values}) {
        const CacheView& view = bytes == &spoiled.keys ? cache.key_view : cache.value_view;
        std::memset(bytes->data() + position * view.row_elements * 4, 0xff, view.row_elements * 4);
      }
    }
    spoiled.key_view.data = spoiled.keys.data();
    spoiled.value_view.data = spoiled.values.data();
    const std::vector<float> out = attend({nullptr, isa}, c, q, spoiled.key_view, spoiled.value_view);
    const std::size_t row = 4 * 32;
    EXPECT_TRUE(same_bits(std::span(whole).subspan(row, 2 * row), std::span(out).subspan(row, 2 * row)));
    EXPECT_TRUE(std::isnan(out[0]));
    EXPECT_TRUE(std::isnan(out[3 * row]));
  }
}

TEST(Attention, ReadsAndWritesNothingOutside) {
  std::mt19937_64 random = test_random(6);
  for (Case c : cases(random)) {
    for (const DType dtype : {DType::kBF16, DType::kF32, DType::kI8}) {
      const Cache cache = make_cache(random, c, dtype);
      GuardedBytes keys(cache.keys), values(cache.values);
      CacheView key_view = cache.key_view, value_view = cache.value_view;
      key_view.data = keys.data();
      value_view.data = c.latent ? keys.data() : values.data();
      GuardedBytes key_scales(bytes_of(cache.key_scales)), value_scales(bytes_of(cache.value_scales));
      if (dtype == DType::kI8) {
        key_view.scales = key_scales.floats();
        value_view.scales = c.latent ? key_scales.floats() : value_scales.floats();
      }
      GuardedBytes q(bytes_of(normal_floats(random, c.tokens * c.shape.heads * c.shape.key_dim)));
      GuardedBytes out(bytes_of(std::vector<float>(c.tokens * c.shape.heads * c.shape.value_dim)));
      const std::size_t scratch_floats = attention_scratch_floats(c.shape, c.positions());
      GuardedBytes bias(bytes_of(c.bias));
      const ScoreBias score_bias = {c.bias.empty() ? nullptr : bias.floats(), c.score_bias().head_stride,
                                    c.center};
      GuardedBytes scratch(bytes_of(std::vector<float>(scratch_floats)));
      GuardedBytes sinks(bytes_of(c.sinks));
      for (const Isa isa : vector_isas()) {
        attention({nullptr, isa}, c.shape, q.floats(), c.tokens, c.first_position, key_view, value_view,
                  out.floats(), scratch.floats(), score_bias, c.sinks.empty() ? nullptr : sinks.floats());
      }
    }
  }
}

TEST(StoreCache, RoundsToNearestEvenOrCopies) {
  const std::vector<float> numbers = {1.0f, 1.00390625f, 1.01171875f, -0.0f, 3.3e38f, INFINITY, 1e-45f};
  std::vector<std::byte> words(2 * numbers.size()), copy(4 * numbers.size());
  store_cache(numbers.data(), {words.data(), DType::kBF16, 1, numbers.size()});
  store_cache(numbers.data(), {copy.data(), DType::kF32, 1, numbers.size()});
  EXPECT_EQ(words, encode(numbers, DType::kBF16));
  EXPECT_EQ(copy, encode(numbers, DType::kF32));
  EXPECT_EQ(decode(words.data(), DType::kBF16, 1), 1.0f);       // a tie goes to the even word
  EXPECT_EQ(decode(words.data(), DType::kBF16, 2), 1.015625f);  // and here up
}

TEST(StoreCache, CodesAreWithinHalfAScaleOfTheirNumbers) {
  std::mt19937_64 random = test_random(7);
  for (int i = 0; i < 200; ++i) {
    const std::size_t heads = 1 + random() % 3, columns = 1 + random() % 200, stride = 1 + random() % 5;
    std::vector<float> numbers = normal_floats(random, heads * columns);
    const float magnitude = std::ldexp(1.0f, static_cast<int>(random() % 200) - 100);
    for (float& number : numbers) number *= magnitude;
    if (i % 5 == 0) std::fill(numbers.begin(), numbers.end(), 0.0f);
    std::vector<std::byte> codes(numbers.size());
    std::vector<float> scales(heads * cache_groups(columns) * stride, -1.0f);
    store_cache(numbers.data(), {codes.data(), DType::kI8, heads, columns, scales.data(), stride});
    for (std::size_t h = 0; h < heads; ++h) {
      std::vector<float> most(cache_groups(columns));
      for (std::size_t c = 0; c < columns; ++c)
        most[c / kCacheGroup] = std::max(most[c / kCacheGroup], std::fabs(numbers[h * columns + c]));
      for (std::size_t c = 0; c < columns; ++c) {
        const double scale = scales[(h * cache_groups(columns) + c / kCacheGroup) * stride];
        EXPECT_NEAR(scale, most[c / kCacheGroup] / 127.0, 1e-7 * scale + 0x1p-126);
        const int code = static_cast<std::int8_t>(codes[h * columns + c]);
        EXPECT_LE(std::abs(code), 127);
        EXPECT_NEAR(code * scale, double{numbers[h * columns + c]}, scale * (0.5 + 1e-5));
      }
    }
    for (std::size_t s = 0; s < scales.size(); ++s) {
      if (s % stride != 0) {
        EXPECT_EQ(scales[s], -1.0f);
      }
    }
  }
}

TEST(StoreCache, WhatIsNotFiniteSpoilsItsGroupAlone) {
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    std::vector<float> numbers(2 * kCacheGroup, 1.0f);
    numbers[kCacheGroup + 3] = bad;
    std::vector<std::byte> codes(numbers.size());
    std::vector<float> scales(2);
    store_cache(numbers.data(), {codes.data(), DType::kI8, 1, numbers.size(), scales.data(), 1});
    EXPECT_FLOAT_EQ(scales[0], 1 / 127.0f);
    EXPECT_TRUE(std::isnan(scales[1]));
  }
}

}  // namespace
}  // namespace sluice::kernels
