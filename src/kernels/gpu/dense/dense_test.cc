// Kernels of what stands between products: each has the bits of the host's code.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/gpu/dense/dense_test_data.h"

namespace sluice::kernels::gpu {
namespace {

using Random = std::mt19937_64;

class GpuDense : public OnUnits {};
class GpuAttention : public OnUnits {};
INSTANTIATE_TEST_SUITE_P(Units, GpuDense, test_units(), unit_of_test);
INSTANTIATE_TEST_SUITE_P(Units, GpuAttention, test_units(), unit_of_test);

std::vector<float> some_floats(Random& random, std::size_t count) {
  return random() % 2 == 0 ? normal_floats(random, count) : wild_floats(random, count);
}
std::size_t up_to(Random& random, std::size_t most) { return 1 + random() % most; }

// Often about where a warp's numbers end.
std::size_t some_columns(Random& random) {
  static constexpr std::size_t kEdges[] = {1, 15, 16, 17, 31, 32, 33, 127, 128, 129, 256, 512, 513, 1025};
  return random() % 2 == 0 ? kEdges[random() % std::size(kEdges)] : up_to(random, 700);
}

TEST_P(GpuDense, NormsOfRows) {
  Random random = test_random(1);
  for (int i = 0; i < 60; ++i)
    expect_bits_of_the_host(GetParam(), random, [&](Random& r, Operands& operands) {
      op::RmsNorm op;
      op.rows = up_to(r, 40);
      op.columns = some_columns(r);
      op.eps = 1e-6f;
      op.x_stride = op.columns + r() % 3;
      op.y_stride = op.columns + r() % 3;
      op.weight = operands.vector(normal_floats(r, op.columns));
      const std::size_t x = strided(op.rows, op.columns, op.x_stride);
      op.x = operands.put(some_floats(r, x));
      if (r() % 2 == 0) {
        op.y = op.x;
        op.y_stride = op.x_stride;
      } else {
        op.y = operands.put(normal_floats(r, strided(op.rows, op.columns, op.y_stride)));
      }
      return op;
    });
}

TEST_P(GpuDense, RotaryPositions) {
  Random random = test_random(2);
  for (int i = 0; i < 80; ++i)
    expect_bits_of_the_host(GetParam(), random, [&](Random& r, Operands& operands) {
      static constexpr std::size_t kHalves[] = {1, 31, 32, 33, 64, 65, 128, 129, 200, 1024};
      op::Rope op;
      op.form = r() % 2 == 0 ? RopeForm::kHalf : RopeForm::kInterleaved;
      op.tokens = up_to(r, 9);
      op.heads = up_to(r, 6);
      op.half = kHalves[r() % std::size(kHalves)];
      op.head_stride = 2 * op.half + r() % 40;
      op.token_stride = strided(op.heads, 2 * op.half, op.head_stride) + r() % 5;
      op.x = operands.put(some_floats(
          r, strided(op.tokens, strided(op.heads, 2 * op.half, op.head_stride), op.token_stride)));
      op.cos = operands.put(normal_floats(r, op.tokens * op.half));
      op.sin = operands.put(some_floats(r, op.tokens * op.half));
      return op;
    });
}

TEST_P(GpuDense, SumsOfNumbersAndRows) {
  Random random = test_random(3);
  for (int i = 0; i < 40; ++i) {
    expect_bits_of_the_host(GetParam(), random, [&](Random& r, Operands& operands) {
      const std::size_t count = some_columns(r) * up_to(r, 4);
      return op::Add{operands.put(some_floats(r, count)), count, operands.put(some_floats(r, count))};
    });
    expect_bits_of_the_host(GetParam(), random, [&](Random& r, Operands& operands) {
      const std::size_t rows = up_to(r, 40), columns = some_columns(r);
      return op::AddToRows{.x = operands.put(some_floats(r, columns)),
                           .rows = rows,
                           .columns = columns,
                           .to = operands.put(some_floats(r, rows * columns))};
    });
  }
}

TEST_P(GpuDense, NumbersAlone) {
  Random random = test_random(4);
  for (int i = 0; i < 40; ++i) {
    const auto numbers = [](Random& r, Operands& operands, std::size_t count) {
      return operands.put(wild_floats(r, count));
    };
    expect_bits_of_the_host(GetParam(), random, [&](Random& r, Operands& operands) {
      const std::size_t count = some_columns(r) * up_to(r, 3);
      return op::Scale{wild_floats(r, 1)[0], count, numbers(r, operands, count)};
    });
    expect_bits_of_the_host(GetParam(), random, [&](Random& r, Operands& operands) {
      const std::size_t count = some_columns(r);
      return op::Clamp{r() % 4 == 0 ? 0.0f : 0.8f, count, numbers(r, operands, count)};
    });
    expect_bits_of_the_host(GetParam(), random, [&](Random& r, Operands& operands) {
      const std::size_t count = some_columns(r);
      return op::Clear{count, numbers(r, operands, count)};
    });
    expect_bits_of_the_host(GetParam(), random, [&](Random& r, Operands& operands) {
      const std::size_t rows = up_to(r, 40), columns = some_columns(r);
      std::vector<float> gate = wild_floats(r, rows);
      for (float& one : gate) one *= 1.0f + static_cast<float>(r() % 40);
      return op::GateRows{operands.put(gate), rows, columns, operands.put(wild_floats(r, rows * columns))};
    });
  }
}

TEST_P(GpuDense, CopiesOfRows) {
  Random random = test_random(5);
  for (int i = 0; i < 40; ++i) {
    expect_bits_of_the_host(GetParam(), random, [&](Random& r, Operands& operands) {
      op::CopyRows op;
      op.rows = up_to(r, 20);
      op.columns = some_columns(r);
      op.from_stride = r() % 4 == 0 ? 0 : op.columns + r() % 3;
      op.to_stride = op.columns + r() % 3;
      op.from = operands.put(wild_floats(r, strided(op.rows, op.columns, op.from_stride)));
      op.to = operands.put(normal_floats(r, strided(op.rows, op.columns, op.to_stride)));
      return op;
    });
    std::vector<std::uint32_t> which(random() % 30);
    const std::size_t from_rows = up_to(random, 9);
    for (std::uint32_t& row : which) row = static_cast<std::uint32_t>(random() % from_rows);
    expect_bits_of_the_host(GetParam(), random, [&](Random& r, Operands& operands) {
      const std::size_t columns = some_columns(r);
      return op::GatherRows{.from = operands.put(wild_floats(r, from_rows * columns)),
                            .from_rows = from_rows,
                            .columns = columns,
                            .which = which,
                            .to = operands.put(normal_floats(r, which.size() * columns))};
    });
  }
}

TEST_P(GpuDense, SumsOfATokenAreInTheirOrder) {
  Random random = test_random(6);
  for (int i = 0; i < 60; ++i) {
    const std::size_t tokens = up_to(random, 12), rows = up_to(random, 20);
    std::vector<op::WeightedRow> sums(random() % 60);
    for (op::WeightedRow& sum : sums)
      sum = {static_cast<std::uint32_t>(random() % tokens), static_cast<std::uint32_t>(random() % rows),
             wild_floats(random, 1)[0]};
    expect_bits_of_the_host(GetParam(), random, [&](Random& r, Operands& operands) {
      const std::size_t columns = some_columns(r);
      return op::CombineRows{.rows = operands.put(some_floats(r, rows * columns)),
                             .row_count = rows,
                             .columns = columns,
                             .sums = sums,
                             .to = operands.put(normal_floats(r, tokens * columns)),
                             .tokens = tokens};
    });
  }
}

// Tables of blocks in any order, of a cache that has more of them than positions need.
std::vector<std::uint32_t> some_blocks(Random& random, std::size_t positions) {
  std::vector<std::uint32_t> blocks((positions + kCacheBlock - 1) / kCacheBlock + random() % 3);
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::uint32_t>(i);
  std::shuffle(blocks.begin(), blocks.end(), random);
  return blocks;
}

// A cache with random content; `blocks`: its table, or null.
CacheRows some_cache(Random& random, Operands& operands, DType dtype, std::size_t positions,
                     std::size_t heads, std::size_t columns, const std::vector<std::uint32_t>* blocks,
                     bool wild) {
  CacheRows cache{.dtype = dtype,
                  .rows = blocks == nullptr ? positions + random() % 3 : blocks->size() * kCacheBlock,
                  .row_elements = heads * columns,
                  .heads = heads,
                  .columns = columns,
                  .blocks = blocks == nullptr ? nullptr : blocks->data()};
  const auto numbers = [&](std::size_t count) {
    return wild ? wild_floats(random, count) : normal_floats(random, count);
  };
  if (dtype == DType::kI8) {
    std::vector<std::byte> codes(cache.data_bytes());
    for (std::byte& code : codes) code = static_cast<std::byte>(random());
    cache.data = operands.bytes(codes);
    std::vector<float> scales = numbers(heads * cache_groups(columns) * cache.rows);
    for (float& scale : scales) scale /= 64;
    cache.scales = operands.put(scales).at;
  } else {
    cache.data = operands.bytes(encode(numbers(cache.rows * cache.row_elements), dtype));
  }
  return cache;
}

constexpr DType kCacheTypes[] = {DType::kBF16, DType::kF32, DType::kI8};

TEST_P(GpuDense, CachesAreStored) {
  Random random = test_random(7);
  for (int i = 0; i < 90; ++i) {
    const std::size_t tokens = up_to(random, 40), first = random() % 70;
    const std::vector<std::uint32_t> blocks = some_blocks(random, first + tokens);
    const bool table = random() % 3 != 0;
    expect_bits_of_the_host(GetParam(), random, [&](Random& r, Operands& operands) {
      const std::size_t heads = up_to(r, 4), columns = up_to(r, 200);
      op::StoreCache op;
      op.tokens = tokens;
      op.x_stride = heads * columns + r() % 3;
      op.first_position = first;
      op.to = some_cache(r, operands, kCacheTypes[i % 3], first + tokens, heads, columns,
                         table ? &blocks : nullptr, false);
      std::vector<float> x = some_floats(r, strided(tokens, heads * columns, op.x_stride));
      const float magnitude = std::ldexp(1.0f, static_cast<int>(r() % 240) - 140);
      for (float& number : x) number *= magnitude;
      op.x = operands.put(x);
      return op;
    });
  }
}

TEST_P(GpuDense, RowsOfCachesAreCopied) {
  Random random = test_random(8);
  for (int i = 0; i < 90; ++i)
    expect_bits_of_the_host(GetParam(), random, [&](Random& r, Operands& operands) {
      op::CopyCacheRows op;
      op.rows = up_to(r, 20);
      op.in = some_cache(r, operands, kCacheTypes[i % 3], 64, up_to(r, 3), up_to(r, 150), nullptr, true);
      op.from = r() % (64 - 2 * op.rows + 1);
      op.to = op.from + op.rows + r() % (64 - 2 * op.rows - op.from + 1);
      if (r() % 2 == 0) std::swap(op.from, op.to);
      return op;
    });
}

struct AttentionCase {
  AttentionShape shape;
  std::size_t tokens = 1, first_position = 0;
  bool latent = false;  // one kv head, whose values are the beginnings of its keys
  bool whole = false;   // rows that begin at multiples of 16 bytes
  bool wild = false;    // some numbers are infinite, NaN or subnormal
  bool tiny = false;    // products are subnormal, or zeros of either sign
};

AttentionCase some_attention(Random& random) {
  AttentionCase c;
  c.tokens = random() % 3 == 0 ? 1 : up_to(random, 40);
  c.first_position = random() % 3 == 0 ? 0 : random() % 150;
  c.shape.kv_heads = up_to(random, 3);
  c.whole = random() % 2 == 0;
  c.latent = random() % 4 == 0;
  if (c.latent) c.shape.kv_heads = 1;
  c.shape.heads = c.shape.kv_heads * up_to(random, 6);
  c.shape.value_dim = up_to(random, 100);
  c.shape.key_dim = c.latent ? c.shape.value_dim + random() % 30 : up_to(random, 100);
  if (c.whole) {
    c.shape.key_dim = (c.shape.key_dim + 31) / 32 * 32;
    c.shape.value_dim = (c.shape.value_dim + 15) / 16 * 16;
  }
  c.shape.scale = 1.0f / std::sqrt(static_cast<float>(c.shape.key_dim));
  if (random() % 2 == 0) c.shape.window = up_to(random, 60);
  if (random() % 4 == 0) c.shape.visible = up_to(random, 120);
  c.wild = random() % 8 == 0;
  c.tiny = random() % 8 == 0;
  return c;
}

void check_attention(TestUnit unit, Random& random, const AttentionCase& c, DType keys, DType values) {
  const AttentionShape& shape = c.shape;
  const std::size_t positions = std::max(c.first_position + c.tokens, shape.visible);
  const std::vector<std::uint32_t> blocks = some_blocks(random, positions),
                                   more = some_blocks(random, positions);
  const std::uint64_t dice = random();
  const bool table = dice % 4 != 0, bias = dice / 4 % 3 == 0, sinks = dice / 12 % 3 == 0;
  SCOPED_TRACE(::testing::Message() << shape.heads << " heads, " << shape.kv_heads << " kv heads, key "
                                    << shape.key_dim << ", value " << shape.value_dim << ", window "
                                    << shape.window << ", visible " << shape.visible << ", " << c.tokens
                                    << " tokens from " << c.first_position << ", " << dtype_name(keys) << " "
                                    << dtype_name(values) << (table ? ", blocks" : "")
                                    << (bias ? ", bias" : "") << (sinks ? ", sinks" : "")
                                    << (c.latent ? ", latent" : ""));
  expect_bits_of_the_host(unit, random, [&](Random& r, Operands& operands) {
    op::Attention op;
    op.shape = shape;
    op.tokens = c.tokens;
    op.first_position = c.first_position;
    const auto numbers = [&](std::size_t count) {
      std::vector<float> all = c.wild ? wild_floats(r, count) : normal_floats(r, count);
      if (c.tiny)
        for (float& number : all) number *= 0x1p-140f;
      return operands.put(all);
    };
    const std::size_t more_columns = c.whole ? 16 * (r() % 2) : r() % 3;
    op.q = numbers(c.tokens * shape.heads * shape.key_dim);
    op.keys = some_cache(r, operands, keys, positions, shape.kv_heads, shape.key_dim + more_columns,
                         table ? &blocks : nullptr, c.wild);
    op.values = c.latent ? op.keys
                         : some_cache(r, operands, values, positions, shape.kv_heads,
                                      shape.value_dim + more_columns, table ? &more : nullptr, c.wild);
    op.out = operands.put(normal_floats(r, c.tokens * shape.heads * shape.value_dim));
    const std::size_t threads = std::size_t{1} << r() % 7;
    op.scratch_floats = threads * attention_scratch_floats(shape, positions);
    op.scratch = operands.scratch(op.scratch_floats);
    if (bias) {
      op.bias_center = positions - 1 + r() % 3;
      op.bias_stride = op.bias_center + positions + r() % 3;
      op.bias = operands.put(normal_floats(r, shape.heads * op.bias_stride));
    }
    if (sinks) {
      std::vector<float> scores = normal_floats(r, shape.heads);
      for (float& score : scores) score *= 12;
      op.sinks = operands.vector(scores);
    }
    return op;
  });
}

TEST_P(GpuAttention, HasTheBitsOfTheHost) {
  Random random = test_random(9);
  for (int i = 0; i < 120; ++i) {
    const AttentionCase c = some_attention(random);
    const DType keys = kCacheTypes[i % 3];
    check_attention(GetParam(), random, c, keys, random() % 4 == 0 ? kCacheTypes[random() % 3] : keys);
  }
}

TEST_P(GpuAttention, OfPublishedShapes) {
  Random random = test_random(10);
  for (const DType dtype : kCacheTypes) {
    check_attention(GetParam(), random, {{32, 4, 128, 128, 0.088f}, 1, 300}, dtype, dtype);
    check_attention(GetParam(), random, {{16, 16, 128, 128, 0.088f}, 1, 70, false, true}, dtype, dtype);
    check_attention(GetParam(), random, {{16, 1, 576, 512, 0.07f}, 2, 70, true, true}, dtype, dtype);
    check_attention(GetParam(), random, {{8, 1, 64, 64, 0.125f, 128}, 3, 400, false, true}, dtype, dtype);
    check_attention(GetParam(), random, {{5, 5, 80, 80, 0.11f, 1}, 9, 0}, dtype, dtype);
  }
}

// Scores of a thousand blocks' largest are looked through, too.
TEST_P(GpuAttention, OfManyPositions) {
  Random random = test_random(11);
  check_attention(GetParam(), random, {{2, 1, 8, 8, 0.35f}, 1, 2500}, DType::kBF16, DType::kBF16);
  check_attention(GetParam(), random, {{2, 1, 8, 8, 0.35f, 700}, 5, 2500}, DType::kF32, DType::kF32);
}

}  // namespace
}  // namespace sluice::kernels::gpu
