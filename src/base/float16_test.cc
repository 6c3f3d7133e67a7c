#include "base/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sluice {
namespace {

// Oracle: the definition of the format (IEEE 754, 3.4) in arithmetic that is exact in double.
double value_of(unsigned word, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(word >> mantissa_bits & ((1u << exponent_bits) - 1));
  const unsigned mantissa = word & ((1u << mantissa_bits) - 1);
  const double sign = (word >> (exponent_bits + mantissa_bits) & 1) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1u << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

TEST(Float16, EveryBinary16WordHasItsValue) {
  for (unsigned w = 0; w < 65'536; ++w) {
    const float value = fp16_to_float(static_cast<std::uint16_t>(w));
    const double expected = value_of(w, 5, 10);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << w;
      ASSERT_EQ(std::bit_cast<std::uint32_t>(value) & 0x7fffffu, (w & 0x3ffu) << 13) << "payload";
    } else {
      ASSERT_EQ(static_cast<double>(value), expected) << w;
    }
    ASSERT_EQ(std::signbit(value), (w & 0x8000u) != 0) << w;
  }
}

TEST(Float16, EveryBf16WordHasItsValueAndComesBack) {
  for (unsigned w = 0; w < 65'536; ++w) {
    const auto word = static_cast<std::uint16_t>(w);
    const float value = bf16_to_float(word);
    const double expected = value_of(w, 8, 7);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << w;
      ASSERT_EQ(float_to_bf16(value), w | 0x40u) << "made quiet";
    } else {
      ASSERT_EQ(static_cast<double>(value), expected) << w;
      ASSERT_EQ(float_to_bf16(value), w);
    }
  }
}

TEST(Float16, RoundingGoesToTheNearestAndTiesToEven) {
  for (unsigned w = 0; w < 0x7f80; ++w) {  // positive finite words and the step above each
    const std::uint32_t bits = w << 16;
    const auto rounded = [&](std::uint32_t low) { return float_to_bf16(std::bit_cast<float>(bits | low)); };
    ASSERT_EQ(rounded(0x0001), w);
    ASSERT_EQ(rounded(0x7fff), w);
    ASSERT_EQ(rounded(0x8000), w + (w & 1u)) << "tie";
    ASSERT_EQ(rounded(0x8001), w + 1);
    ASSERT_EQ(rounded(0xffff), w + 1);
    ASSERT_EQ(float_to_bf16(-std::bit_cast<float>(bits | 0x8001u)), (w + 1) | 0x8000u);
  }
}

TEST(Float16, LargeValuesRoundToInfinityAndNaNNeverDoes) {
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7f80u);
  EXPECT_EQ(float_to_bf16(-std::numeric_limits<float>::max()), 0xff80u);
  for (const std::uint32_t nan : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffffffffu, 0x7fc00000u}) {
    EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::bit_cast<float>(nan))))) << nan;
  }
}

// For every two neighbours: both of them, values between them nearer to either, and the middle, which rounds
// to the even one.
TEST(Float16, DoublesRoundToTheNearestBinary16) {
  for (unsigned w = 0; w < 0x7c00u; ++w) {
    const double low = value_of(w, 5, 10), high = w + 1 == 0x7c00u ? 65536.0 : value_of(w + 1, 5, 10);
    const double middle = (low + high) / 2;
    for (const double sign : {1.0, -1.0}) {
      const unsigned bit = sign < 0 ? 0x8000u : 0;
      ASSERT_EQ(double_to_fp16(sign * low), w | bit);
      ASSERT_EQ(double_to_fp16(sign * std::nextafter(middle, 0.0)), w | bit);
      ASSERT_EQ(double_to_fp16(sign * middle), (w + (w & 1)) | bit) << w;
      ASSERT_EQ(double_to_fp16(sign * std::nextafter(middle, 1e9)), (w + 1) | bit);
    }
  }
  EXPECT_EQ(double_to_fp16(1e300), 0x7c00u);
  EXPECT_EQ(double_to_fp16(-std::numeric_limits<double>::infinity()), 0xfc00u);
  EXPECT_EQ(double_to_fp16(std::numeric_limits<double>::denorm_min()), 0u);
  const std::uint16_t nan = double_to_fp16(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(std::isnan(fp16_to_float(nan)));
}

}  // namespace
}  // namespace sluice
