#include "codec/slices/affine_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numbers>
#include <string>

#include "base/error.h"
#include "codec/slices/quantiser_variants.h"

namespace sluice::codec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Codes = std::vector<unsigned>;

Codes higher(const AffineGroup& group, unsigned shift) {
  Codes codes;
  for (const unsigned code : group.codes) codes.push_back(code >> shift);
  return codes;
}
Codes lower(const AffineGroup& group, unsigned shift) {
  Codes codes;
  for (const unsigned code : group.codes) codes.push_back(code & ((1u << shift) - 1));
  return codes;
}

// The first vector of SPEC 7.4.
TEST(AffineGroup, EightBitsInTwoSlices) {
  const std::vector<double> w = {-1, -.5, 0, .25, .5, .75, .875, .9921875};
  for (const ScaleType type : {ScaleType::kFp16, ScaleType::kDouble}) {
    const AffineGroup group = quantise_affine(w, 8, type);
    EXPECT_EQ(group.scale, 1.0 / 128);
    EXPECT_EQ(group.zero, 128u);
    EXPECT_THAT(group.codes, ElementsAre(0, 64, 128, 160, 192, 224, 240, 255));
    EXPECT_THAT(higher(group, 4), ElementsAre(0, 4, 8, 10, 12, 14, 15, 15));
    EXPECT_EQ(group.zero >> 4, 8u);
    std::vector<double> low, high;
    for (const unsigned code : group.codes) {
      low.push_back(low_view(group, code, 4));
      high.push_back(high_view(group, code));
    }
    EXPECT_THAT(low, ElementsAre(-1, -.5, 0, .25, .5, .75, .875, .875));
    EXPECT_EQ(high, w);
    EXPECT_EQ(center_view(group, 255, 4), (240 + 7.5 - 128) / 128);
  }
}

TEST(AffineGroup, OtherWidths) {
  const std::vector<double> w = {-.5, -.25, -.1, 0, .05, .1, .3, .6};
  const AffineGroup eight = quantise_affine(w, 8, ScaleType::kDouble);
  EXPECT_EQ(eight.scale, 1.1 / 255);
  EXPECT_EQ(eight.zero, 116u);
  EXPECT_THAT(eight.codes, ElementsAre(0, 58, 93, 116, 128, 139, 186, 255));
  EXPECT_THAT(higher(eight, 4), ElementsAre(0, 3, 5, 7, 8, 8, 11, 15));
  EXPECT_EQ(eight.zero >> 4, 7u);
  EXPECT_THAT(lower(eight, 4), ElementsAre(0, 10, 13, 4, 0, 11, 10, 15));
  const AffineGroup six = quantise_affine(w, 6, ScaleType::kDouble);
  EXPECT_EQ(six.zero, 29u);
  EXPECT_THAT(six.codes, ElementsAre(0, 15, 23, 29, 32, 35, 46, 63));
  EXPECT_THAT(higher(six, 3), ElementsAre(0, 1, 2, 3, 4, 4, 5, 7));
  EXPECT_EQ(six.zero >> 3, 3u);
  const AffineGroup four = quantise_affine(w, 4, ScaleType::kDouble);
  EXPECT_EQ(four.zero, 7u);
  EXPECT_THAT(four.codes, ElementsAre(0, 4, 6, 7, 8, 8, 11, 15));
  EXPECT_THAT(higher(four, 2), ElementsAre(0, 1, 1, 1, 2, 2, 2, 3));
  EXPECT_EQ(four.zero >> 2, 1u);
}

TEST(AffineGroup, Degenerate) {
  for (const ScaleType type : {ScaleType::kFp16, ScaleType::kDouble}) {
    const AffineGroup zeros = quantise_affine(std::vector<double>{0, 0, -0.0}, 8, type);
    EXPECT_EQ(zeros.scale, 1);
    EXPECT_EQ(zeros.zero, 0u);
    EXPECT_THAT(zeros.codes, ElementsAre(0, 0, 0));
    const AffineGroup none = quantise_affine({}, 8, type);
    EXPECT_EQ(none.scale, 1);
    EXPECT_TRUE(none.codes.empty());
  }
  const AffineGroup above = quantise_affine(std::vector<double>{.25, .5, .75, 1}, 4, ScaleType::kDouble);
  EXPECT_EQ(above.zero, 0u);
  EXPECT_THAT(above.codes, ElementsAre(4, 8, 11, 15));
  const AffineGroup below = quantise_affine(std::vector<double>{-1, -.5, -.25, -.125}, 4, ScaleType::kDouble);
  EXPECT_EQ(below.zero, 15u);
  EXPECT_THAT(below.codes, ElementsAre(0, 8, 11, 13));
  const AffineGroup least =
      quantise_affine(std::vector<double>{std::numeric_limits<double>::denorm_min()}, 8, ScaleType::kDouble);
  EXPECT_THAT(least.codes, ElementsAre(0));
}

// A scale outside binary16 becomes the nearest binary16 value, and codes stay in their range.
TEST(AffineGroup, ScalesStayWithinBinary16) {
  const AffineGroup tiny = quantise_affine(std::vector<double>{1e-9, -1e-9}, 8, ScaleType::kFp16);
  EXPECT_EQ(tiny.scale, std::ldexp(1.0, -24));
  EXPECT_THAT(tiny.codes, ElementsAre(0, 0));
  const AffineGroup huge = quantise_affine(std::vector<double>{3e38, -3e38, 1e6}, 8, ScaleType::kFp16);
  EXPECT_EQ(huge.scale, 65504);
  EXPECT_EQ(huge.zero, 255u);
  EXPECT_THAT(huge.codes, ElementsAre(255, 0, 255));
  EXPECT_EQ(fp16_scale(1.0 + std::ldexp(1.0, -11)), 1.0);  // ties to even
  EXPECT_EQ(fp16_scale(1.0 + 3 * std::ldexp(1.0, -11)), 1.0 + std::ldexp(1.0, -9));
}

TEST(AffineGroup, WeightsWithoutAValueAreRefused) {
  for (const double bad :
       {std::nan(""), std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    const std::vector<double> w = {1, 2, bad};
    try {
      quantise_affine(w, 8, ScaleType::kFp16);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalid);
      EXPECT_THAT(error.what(), HasSubstr("weight 2"));
    }
    for (const QuantiserVariant& variant : quantiser_variants()) {
      std::vector<double> out(3);
      EXPECT_THROW(variant.apply(w, {8, 4}, out), Error) << variant.name;
    }
  }
}

TEST(AffineGroup, RoundsHalvesUp) {
  EXPECT_EQ(round_half_up(2.5), 3);
  EXPECT_EQ(round_half_up(-2.5), -2);
  EXPECT_EQ(round_half_up(-2.51), -3);
}

// SPEC 4.2, over all codes and zero points.
TEST(AffineGroup, WhatTruncationDoesToEveryCode) {
  for (const SliceBits bits : kStoredSliceBits) {
    const unsigned shift = bits.shift(), codes = 1u << bits.high;
    double most = 0;
    for (unsigned zero = 0; zero < codes; ++zero) {
      const AffineGroup group{.scale = 1, .zero = zero, .codes = {}};
      for (unsigned code = 0; code < codes; ++code) {
        const double error = high_view(group, code) - low_view(group, code, shift);
        const int r_code = static_cast<int>(code & ((1u << shift) - 1)),
                  r_zero = static_cast<int>(zero & ((1u << shift) - 1));
        ASSERT_EQ(error, r_code - r_zero);
        ASSERT_EQ(code, code >> shift << shift | (code & ((1u << shift) - 1)));
        most = std::max(most, std::fabs(error));
      }
      ASSERT_EQ(high_view(group, zero), 0);  // the code of weight 0
      ASSERT_EQ(low_view(group, zero, shift), 0);
    }
    EXPECT_EQ(most, (1 << shift) - 1);
  }
}

TEST(SliceBits, AreReadAndWritten) {
  EXPECT_EQ(parse_slice_bits("6/3"), (SliceBits{6, 3}));
  for (const SliceBits bits : kStoredSliceBits) EXPECT_EQ(parse_slice_bits(slice_bits_text(bits)), bits);
  for (const char* bad : {"", "8", "8/3", "4/8", "8/4 ", "08/4"}) EXPECT_FALSE(parse_slice_bits(bad)) << bad;
}

// ---- SPEC 7.4: signal to quantisation noise of Gaussian weights

// Box–Muller over a 64-bit LCG (Knuth's MMIX).
std::vector<double> gaussian(std::size_t count) {
  std::uint64_t state = 20260101;
  const auto uniform = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (static_cast<double>(state >> 11) + 0.5) * 0x1p-53;
  };
  std::vector<double> weights;
  while (weights.size() < count) {
    const double radius = std::sqrt(-2 * std::log(uniform())), angle = 2 * std::numbers::pi * uniform();
    weights.push_back(radius * std::cos(angle));
    weights.push_back(radius * std::sin(angle));
  }
  return weights;
}

struct Noise {
  double sqnr_db = 0, mean_error = 0;  // mean_error in standard deviations of the weights
};
Noise noise_of(const QuantiserVariant& variant, SliceBits bits, std::span<const double> weights) {
  double signal = 0, noise = 0, sum = 0;
  for (std::size_t i = 0; i < weights.size(); i += 32) {
    std::array<double, 32> out{};
    variant.apply(weights.subspan(i, 32), bits, out);
    for (std::size_t j = 0; j < 32; ++j) {
      const double error = out[j] - weights[i + j];
      signal += weights[i + j] * weights[i + j];
      noise += error * error;
      sum += error;
    }
  }
  const auto count = static_cast<double>(weights.size());
  return {10 * std::log10(signal / noise), sum / count / std::sqrt(signal / count)};
}

TEST(QuantiserVariants, HaveTheNoiseOfTheTable) {
  constexpr const char* kNames[] = {
      "asym_high",   "asym_base", "amat",     "asym_keep_zero",    "asym_keep_scale",
      "amat_center", "sym_high",  "sym_base", "sym_shift_rescale", "sym_shift_keep_scale",
      "sym_clip"};
  struct Row {
    SliceBits bits;
    double db[11];
    double amat_mean, keep_zero_mean;
  };
  constexpr Row kRows[] = {
      {{8, 4}, {46.50, 21.89, 19.19, -30.14, .55, 21.98, 45.45, 20.29, 15.58, .55, .99}, .005, -31.2},
      {{6, 3}, {34.35, 15.26, 13.12, -23.62, 1.11, 15.97, 33.18, 12.90, 9.78, 1.13, 1.93}, .01, -14.7},
      {{4, 2}, {21.89, 7.86, 6.63, -16.69, 2.25, 9.72, 20.29, 3.66, 3.77, 2.25, 3.61}, .022, -6.6},
  };
  ASSERT_EQ(quantiser_variants().size(), std::size(kNames));
  const std::vector<double> weights = gaussian(131072);
  for (const Row& row : kRows) {
    std::map<std::string, Noise> noise;
    for (std::size_t i = 0; i < std::size(kNames); ++i) {
      const Noise found = noise_of(find_quantiser_variant(kNames[i]), row.bits, weights);
      EXPECT_NEAR(found.sqnr_db, row.db[i], .3) << kNames[i] << " " << slice_bits_text(row.bits);
      noise[kNames[i]] = found;
    }
    EXPECT_GT(noise["asym_base"].sqnr_db, noise["amat"].sqnr_db);
    EXPECT_GT(noise["amat"].sqnr_db, noise["asym_keep_zero"].sqnr_db + 20);
    EXPECT_NEAR(noise["amat_center"].sqnr_db - noise["amat"].sqnr_db, 2.95, .25);
    EXPECT_LT(std::fabs(noise["amat"].mean_error), row.amat_mean);
    // The error is about 2^shift − 1 times a group's minimum, whose standard deviation is .47: four standard
    // errors of 4096 groups.
    EXPECT_NEAR(noise["asym_keep_zero"].mean_error, row.keep_zero_mean,
                4 * .47 / 64 * ((1 << row.bits.shift()) - 1));
  }
}

TEST(QuantiserVariants, UnknownNamesAreRefused) {
  try {
    find_quantiser_variant("best");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::AllOf(HasSubstr("amat_center"), HasSubstr("\"best\"")));
  }
}

}  // namespace
}  // namespace sluice::codec
