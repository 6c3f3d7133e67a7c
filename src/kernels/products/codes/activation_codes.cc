#include "kernels/products/codes/activation_codes.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "base/machine/thread_pool.h"
#include "kernels/products/blocks/coded_blocks.h"
#include "kernels/products/blocks/coded_blocks_impl.h"
#include "kernels/products/codes/int8_matmul_impl.h"
#include "kernels/products/codes/integer_impl.h"
#include "kernels/products/vector_products_impl.h"
#include "kernels/products/words/matmul.h"
#include "kernels/split.h"

namespace sluice::kernels {
namespace {

using codec::kCellColumns;

constexpr std::uint32_t kInfinity = 0x7f800000;

struct GroupCodes {
  std::int8_t codes[kCellColumns] = {};
  float scale = 0;
  std::int16_t minus_halves[2] = {0, 0};  // −Σ of 16 codes each
  float minus_sum() const { return static_cast<float>(minus_halves[0] + minus_halves[1]); }
};

// Loops of a fixed length, so that the compiler vectorises them.
GroupCodes code_group(const float (&x)[kCellColumns]) {
  std::uint32_t most = 0;  // largest |x| as a word: a NaN is larger than an infinity
  for (const float value : x) most = std::max(most, std::bit_cast<std::uint32_t>(value) & 0x7fffffffu);
  GroupCodes group;
  if (most >= kInfinity) group.scale = std::numeric_limits<float>::quiet_NaN();
  if (most >= kInfinity || std::bit_cast<float>(most) < kSlicedLeast) return group;
  group.scale = std::bit_cast<float>(most) / kMostActivationCode;
  const float inverse = kMostActivationCode / std::bit_cast<float>(most);
  for (std::size_t c = 0; c < kCellColumns; ++c) {
    // A float of this size has steps of 1; the whole number is in its lower bits.
    constexpr float kWhole = 0x1.8p23f;
    const auto word = std::bit_cast<std::int32_t>(x[c] * inverse + kWhole);
    const std::int32_t code = word - std::bit_cast<std::int32_t>(kWhole);
    group.codes[c] = static_cast<std::int8_t>(code);
  }
  for (std::size_t half = 0; half < 2; ++half) {
    int sum = 0;
    for (std::size_t c = 0; c < kCellColumns / 2; ++c) sum += group.codes[half * kCellColumns / 2 + c];
    group.minus_halves[half] = static_cast<std::int16_t>(-sum);
  }
  return group;
}

void put_group(const float (&x)[kCellColumns], std::size_t g, const CodedToken<float>& token) {
  const GroupCodes coded = code_group(x);
  std::memcpy(token.codes + g * kCellColumns, coded.codes, kCellColumns);
  token.scales[g] = coded.scale;
  token.minus_sums[g] = coded.minus_sum();
}

void code_token(const float* x, std::size_t columns, float* out) {
  const std::size_t groups = (columns + kCellColumns - 1) / kCellColumns;
  const CodedToken<float> token(out, groups);
  for (std::size_t g = 0; g < groups; ++g) {
    float group[kCellColumns] = {};
    const std::size_t n = std::min(kCellColumns, columns - g * kCellColumns);
    std::memcpy(group, x + g * kCellColumns, n * sizeof(float));
    put_group(group, g, token);
  }
}

// Codes a token of whole groups.
void code_token_for_blocks(const float* x, std::size_t columns, float* out) {
  const BlockCodes<float> token(out, columns);
  const std::size_t groups = columns / kCellColumns;
  for (std::size_t g = 0; g < groups; ++g) {
    float group[kCellColumns];
    std::memcpy(group, x + g * kCellColumns, sizeof(group));
    const GroupCodes coded = code_group(group);
    std::memcpy(token.codes + g * kCellColumns, coded.codes, kCellColumns);
    token.scales[g] = coded.scale;
    token.minus_sums[g] = coded.minus_sum();
    std::memcpy(token.minus_halves + g * sizeof(coded.minus_halves), coded.minus_halves,
                sizeof(coded.minus_halves));
  }
  for (std::size_t g = groups; g % kStripGroups != 0; ++g) {
    token.scales[g] = token.minus_sums[g] = 0;
    std::memset(token.minus_halves + g * sizeof(GroupCodes::minus_halves), 0,
                sizeof(GroupCodes::minus_halves));
  }
}

// Codes a token that arrange_activations() has arranged.
void code_arranged_token(const float* arranged, std::size_t columns, float* out) {
  const std::size_t groups = (columns + kCellColumns - 1) / kCellColumns;
  const CodedToken<float> token(out, groups);
  for (std::size_t g = 0; g < groups; ++g) {
    float group[kCellColumns];
    const float* const even = arranged + arranged_place(g * kCellColumns);
    const float* const odd = arranged + arranged_place(g * kCellColumns + 1);
    for (std::size_t i = 0; i < kCellColumns / 2; ++i) {
      group[2 * i] = even[i];
      group[2 * i + 1] = odd[i];
    }
    put_group(group, g, token);
  }
}

}  // namespace

void code_activations(const Context& ctx, const float* x, std::size_t tokens, std::size_t columns,
                      std::size_t x_stride, float* codes, std::size_t codes_stride) {
  split(ctx, tokens, 1, tokens * columns, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) code_token(x + t * x_stride, columns, codes + t * codes_stride);
  });
}

void code_for_blocks(const Context& ctx, const float* x, std::size_t tokens, std::size_t columns,
                     std::size_t x_stride, float* codes, std::size_t codes_stride) {
  split(ctx, tokens, 1, tokens * columns, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t)
      code_token_for_blocks(x + t * x_stride, columns, codes + t * codes_stride);
  });
}

void code_arranged(const Context& ctx, const float* arranged, std::size_t tokens, std::size_t columns,
                   float* codes) {
  if (ctx.rounds()) arranged = widen_activations(ctx, arranged, tokens, columns);
  split(ctx, tokens, 1, tokens * columns, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t)
      code_arranged_token(arranged + t * arranged_floats(columns), columns,
                          codes + t * activation_code_floats(columns));
  });
}

}  // namespace sluice::kernels
