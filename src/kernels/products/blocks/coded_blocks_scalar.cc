// The order of sums of coded_blocks.h in plain code and whole numbers: the oracle of every instruction set.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "codec/blocks/block_codes.h"
#include "codec/blocks/tables.h"
#include "kernels/kernel_table.h"
#include "kernels/products/blocks/coded_blocks_impl.h"

namespace sluice::kernels {
namespace {

using namespace codec::blocks;

// The weights of 32 columns of a row.
struct WeightGroup {
  int codes[kGroupColumns] = {};
  int scales[2] = {1, 1}, minima[2] = {0, 0};  // for both halves
  float scale = 0, minimum = 0;                // a and b
};

template <class Code>
WeightGroup group_of(float scale, const Code& code) {
  WeightGroup group;
  group.scale = scale;
  for (unsigned i = 0; i < kGroupColumns; ++i) group.codes[i] = static_cast<int>(code(i));
  return group;
}
WeightGroup with_minimum(WeightGroup group, float minimum) {
  group.minima[0] = group.minima[1] = 1;
  group.minimum = minimum;
  return group;
}
int signed_byte(const std::byte* at) { return static_cast<std::int8_t>(*at); }

// Group h of a block. `other`: the block's byte of the second plane.
struct OracleQ80 {
  static constexpr std::size_t kColumns = 32, kBytes = 34;
  static WeightGroup group(const std::byte* block, const std::byte*, unsigned) {
    return group_of(half(block), [&](unsigned i) { return signed_byte(block + 2 + i); });
  }
};
struct OracleQ40 {
  static constexpr std::size_t kColumns = 32, kBytes = 18;
  static WeightGroup group(const std::byte* block, const std::byte*, unsigned) {
    return group_of(half(block), [&](unsigned i) { return static_cast<int>(nibble32(block + 2, i)) - 8; });
  }
};
struct OracleQ41 {
  static constexpr std::size_t kColumns = 32, kBytes = 20;
  static WeightGroup group(const std::byte* block, const std::byte*, unsigned) {
    return with_minimum(group_of(half(block), [&](unsigned i) { return nibble32(block + 4, i); }),
                        -half(block + 2));
  }
};
struct OracleQ50 {
  static constexpr std::size_t kColumns = 32, kBytes = 22;
  static WeightGroup group(const std::byte* block, const std::byte*, unsigned) {
    return group_of(half(block),
                    [&](unsigned i) { return static_cast<int>(code5(block + 2, block + 6, i)) - 16; });
  }
};
struct OracleQ51 {
  static constexpr std::size_t kColumns = 32, kBytes = 24;
  static WeightGroup group(const std::byte* block, const std::byte*, unsigned) {
    return with_minimum(group_of(half(block), [&](unsigned i) { return code5(block + 4, block + 8, i); }),
                        -half(block + 2));
  }
};
struct OracleQ2K {
  static constexpr std::size_t kColumns = 256, kBytes = 84;
  static WeightGroup group(const std::byte* block, const std::byte*, unsigned h) {
    WeightGroup group =
        group_of(half(block + 80), [&](unsigned i) { return pair_of_bits(block + 16, 32 * h + i); });
    group.minimum = half(block + 82);
    for (unsigned i = 0; i < 2; ++i) {
      group.scales[i] = static_cast<int>(byte(block + 2 * h + i) & 15);
      group.minima[i] = static_cast<int>(byte(block + 2 * h + i) >> 4);
    }
    return group;
  }
};
struct OracleQ3K {
  static constexpr std::size_t kColumns = 256, kBytes = 110;
  static WeightGroup group(const std::byte* block, const std::byte*, unsigned h) {
    WeightGroup group = group_of(half(block + 108), [&](unsigned i) { return q3k_code(block, 32 * h + i); });
    for (unsigned i = 0; i < 2; ++i) group.scales[i] = q3k_scale(block + 96, 2 * h + i);
    return group;
  }
};
struct OracleQ4K {
  static constexpr std::size_t kColumns = 256, kBytes = 144;
  static WeightGroup group(const std::byte* block, const std::byte*, unsigned h) {
    const auto [scale, minimum] = of_sub_block(block + 4, h);
    return with_minimum(group_of(half(block) * static_cast<float>(scale),
                                 [&](unsigned i) { return nibble64(block + 16, 32 * h + i); }),
                        half(block + 2) * static_cast<float>(minimum));
  }
};
struct OracleQ5K {
  static constexpr std::size_t kColumns = 256, kBytes = 176;
  static WeightGroup group(const std::byte* block, const std::byte*, unsigned h) {
    const auto [scale, minimum] = of_sub_block(block + 4, h);
    return with_minimum(group_of(half(block) * static_cast<float>(scale),
                                 [&](unsigned i) { return q5k_code(block, 32 * h + i); }),
                        half(block + 2) * static_cast<float>(minimum));
  }
};
struct OracleQ6K {
  static constexpr std::size_t kColumns = 256, kBytes = 210;
  static WeightGroup group(const std::byte* block, const std::byte*, unsigned h) {
    WeightGroup group = group_of(half(block + 208), [&](unsigned i) { return q6k_code(block, 32 * h + i); });
    for (unsigned i = 0; i < 2; ++i) group.scales[i] = signed_byte(block + 192 + 2 * h + i);
    return group;
  }
};
struct OracleIq4Nl {
  static constexpr std::size_t kColumns = 32, kBytes = 18;
  static WeightGroup group(const std::byte* block, const std::byte*, unsigned) {
    return group_of(half(block), [&](unsigned i) { return kIq4[nibble32(block + 2, i)]; });
  }
};
struct OracleIq4Xs {
  static constexpr std::size_t kColumns = 256, kBytes = 136;
  static WeightGroup group(const std::byte* block, const std::byte*, unsigned h) {
    return group_of(half(block) * static_cast<float>(iq4xs_scale(block, h)),
                    [&](unsigned i) { return kIq4[nibble32(block + 8 + 16 * h, i)]; });
  }
};
struct OracleMxfp4 {
  static constexpr std::size_t kColumns = 32, kBytes = 17;
  static WeightGroup group(const std::byte* block, const std::byte*, unsigned) {
    return group_of(power_of_two(*block) / 2, [&](unsigned i) { return 2 * kFp4[nibble32(block + 1, i)]; });
  }
};
struct OracleMxfp4Pair {
  static constexpr std::size_t kColumns = 32, kBytes = 16;
  static WeightGroup group(const std::byte* block, const std::byte* other, unsigned) {
    return group_of(power_of_two(*other) / 2,
                    [&](unsigned i) { return 2 * kFp4[byte(block + i / 2) >> (i % 2 * 4) & 15]; });
  }
};

template <class Format>
WeightGroup group_at(const ProductArgs& a, std::size_t row, std::size_t g) {
  constexpr std::size_t kGroups = Format::kColumns / kGroupColumns;
  const std::size_t block = row * (a.columns / Format::kColumns) + g / kGroups;
  const std::byte* const other = a.planes[1] == nullptr ? nullptr : a.planes[1] + block;
  return Format::group(a.planes[0] + block * Format::kBytes, other, static_cast<unsigned>(g % kGroups));
}

float coded_dot(const ProductArgs& a, std::size_t row, std::size_t token, bool minima,
                WeightGroup (*at)(const ProductArgs&, std::size_t, std::size_t)) {
  const BlockCodes<const float> x(a.x + token * a.x_stride, a.columns);
  const std::size_t groups = a.columns / kGroupColumns;
  float totals[kStripGroups] = {};
  for (std::size_t g = 0; g < (groups + kStripGroups - 1) / kStripGroups * kStripGroups; ++g) {
    const WeightGroup w = g < groups ? at(a, row, g) : WeightGroup{};
    const float scale = g < groups ? x.scales[g] : 0;
    int sum = 0, minimum = 0;
    for (std::size_t i = 0; g < groups && i < kGroupColumns; ++i) {
      const int code = signed_byte(x.codes + g * kGroupColumns + i);
      sum += w.scales[i / 16] * w.codes[i] * code;
      minimum -= w.minima[i / 16] * code;
    }
    float& total = totals[g % kStripGroups];
    total = std::fma(w.scale, scale * static_cast<float>(sum), total);
    if (minima) total = std::fma(w.minimum, scale * static_cast<float>(minimum), total);
  }
  for (std::size_t n = kStripGroups / 2; n > 0; n /= 2)
    for (std::size_t l = 0; l < n; ++l) totals[l] += totals[l + n];
  return totals[0];
}

template <class Format, bool kMinima = false>
void coded_rows(const ProductArgs& a, std::size_t begin, std::size_t end) {
  for (std::size_t t = 0; t < a.tokens; ++t)
    for (std::size_t row = begin; row < end; ++row) {
      const float y = coded_dot(a, row, t, kMinima, group_at<Format>);
      a.y[t * a.y_stride + row] = a.bias == nullptr ? y : y + a.bias[row];
    }
}

}  // namespace

const CodedBlockKernels kCodedBlocksScalar = {
    {coded_rows<OracleQ40>, coded_rows<OracleQ41, true>, coded_rows<OracleQ50>, coded_rows<OracleQ51, true>,
     coded_rows<OracleQ80>, coded_rows<OracleQ2K, true>, coded_rows<OracleQ3K>, coded_rows<OracleQ4K, true>,
     coded_rows<OracleQ5K, true>, coded_rows<OracleQ6K>, coded_rows<OracleIq4Nl>, coded_rows<OracleIq4Xs>,
     coded_rows<OracleMxfp4>, coded_rows<OracleMxfp4Pair>}};

}  // namespace sluice::kernels
