#include "codec/exponents/bf16_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace sluice::codec {
namespace {

using Plane = std::vector<std::byte>;

Plane all_words() {
  Plane words(2 * 65'536);
  for (unsigned w = 0; w < 65'536; ++w) {
    words[2 * w] = static_cast<std::byte>(w & 0xff);
    words[2 * w + 1] = static_cast<std::byte>(w >> 8);
  }
  return words;
}

class Bf16SplitTest : public ::testing::TestWithParam<Isa> {};

TEST_P(Bf16SplitTest, VectorsOfTheSpecification) {  // SPEC 7.1
  const struct {
    std::uint16_t word;
    std::uint8_t e, sm;
  } vectors[] = {{0x3F80, 0x7F, 0x00}, {0xC049, 0x80, 0xC9}, {0x8000, 0x00, 0x80}, {0x7F80, 0xFF, 0x00},
                 {0x7FC0, 0xFF, 0x40}, {0xFF80, 0xFF, 0x80}, {0x0001, 0x00, 0x01}, {0x3E2B, 0x7C, 0x2B}};
  for (const auto& v : vectors) {
    // A whole vector register of copies, so that the test runs the fast path.
    Plane words(2 * 64), e(64), sm(64), back(2 * 64);
    for (std::size_t i = 0; i < 64; ++i) {
      words[2 * i] = static_cast<std::byte>(v.word & 0xff);
      words[2 * i + 1] = static_cast<std::byte>(v.word >> 8);
    }
    split_bf16(words, e, sm, GetParam());
    EXPECT_EQ(e, Plane(64, static_cast<std::byte>(v.e))) << std::hex << v.word;
    EXPECT_EQ(sm, Plane(64, static_cast<std::byte>(v.sm))) << std::hex << v.word;
    merge_bf16(e, sm, back, GetParam());
    EXPECT_EQ(back, words);
  }
}

// Oracle: the formulas of SPEC 1.2 in integer arithmetic.
TEST_P(Bf16SplitTest, AllWordsAreSplitByTheFormulaAndComeBack) {
  const Plane words = all_words();
  Plane e(65'536), sm(65'536), back(2 * 65'536);
  split_bf16(words, e, sm, GetParam());
  for (unsigned h = 0; h < 65'536; ++h) {
    ASSERT_EQ(std::to_integer<unsigned>(e[h]), h >> 7 & 0xff) << h;
    ASSERT_EQ(std::to_integer<unsigned>(sm[h]), (h >> 15) << 7 | (h & 0x7f)) << h;
  }
  merge_bf16(e, sm, back, GetParam());
  EXPECT_TRUE(back == words);
}

TEST_P(Bf16SplitTest, AllPairsOfPlaneBytesAreMerged) {
  Plane e(65'536), sm(65'536), words(2 * 65'536);
  for (unsigned i = 0; i < 65'536; ++i) {
    e[i] = static_cast<std::byte>(i >> 8);
    sm[i] = static_cast<std::byte>(i & 0xff);
  }
  merge_bf16(e, sm, words, GetParam());
  for (unsigned i = 0; i < 65'536; ++i) {
    const unsigned expected = (i & 0x80) << 8 | (i >> 8) << 7 | (i & 0x7f);
    ASSERT_EQ(std::to_integer<unsigned>(words[2 * i]) | std::to_integer<unsigned>(words[2 * i + 1]) << 8,
              expected);
  }
}

TEST_P(Bf16SplitTest, AnyCountAtAnyAddressTouchesNothingElse) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  constexpr std::byte kGuard{0xa5};
  constexpr std::size_t kRoom = 80;
  for (std::size_t count = 0; count <= 200; ++count) {
    const std::size_t shift_w = random() % 64, shift_e = random() % 64, shift_sm = random() % 64;
    Plane words(2 * count + kRoom * 2, kGuard), e(count + kRoom * 2, kGuard), sm(count + kRoom * 2, kGuard);
    for (std::size_t i = 0; i < 2 * count; ++i) words[shift_w + i] = static_cast<std::byte>(random());
    const Plane original = words;
    split_bf16(std::span(words).subspan(shift_w, 2 * count), std::span(e).subspan(shift_e, count),
               std::span(sm).subspan(shift_sm, count), GetParam());
    EXPECT_EQ(words, original);

    Plane e_oracle(e.size(), kGuard), sm_oracle(sm.size(), kGuard);
    bf16_split_kernels(Isa::kScalar)
        .split(words.data() + shift_w, count, e_oracle.data() + shift_e, sm_oracle.data() + shift_sm);
    EXPECT_EQ(e, e_oracle) << count;
    EXPECT_EQ(sm, sm_oracle) << count;

    Plane back(words.size(), kGuard);
    merge_bf16(std::span(e).subspan(shift_e, count), std::span(sm).subspan(shift_sm, count),
               std::span(back).subspan(shift_w, 2 * count), GetParam());
    EXPECT_EQ(back, original) << count;
  }
}

TEST_P(Bf16SplitTest, MergesExponentsInTheUpperHalfOfTheWords) {
  const Plane all = all_words();
  for (const std::size_t count : {1, 15, 16, 31, 63, 64, 65, 127, 1000, 65'536}) {
    const Plane words(all.end() - static_cast<std::ptrdiff_t>(2 * count), all.end());
    Plane e(count), sm(count), place(2 * count);
    split_bf16(words, e, sm, GetParam());
    std::copy(e.begin(), e.end(), place.begin() + static_cast<std::ptrdiff_t>(count));
    bf16_split_kernels(GetParam()).merge(place.data() + count, sm.data(), count, place.data());
    EXPECT_EQ(place, words) << count;
  }
}

TEST_P(Bf16SplitTest, ReadsNothingOutsideExactAllocations) {  // seen by the address sanitizer
  for (std::size_t count = 1; count <= 70; ++count) {
    const std::unique_ptr<std::byte[]> words(new std::byte[2 * count]()), e(new std::byte[count]),
        sm(new std::byte[count]);
    const Bf16SplitKernels& kernels = bf16_split_kernels(GetParam());
    kernels.split(words.get(), count, e.get(), sm.get());
    kernels.merge(e.get(), sm.get(), count, words.get());
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Bf16SplitTest, ::testing::ValuesIn(available_isas()),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

TEST(Bf16SplitDispatch, ForcedSetsHaveKernelsOfTheirOwn) {
#if defined(__x86_64__)
  EXPECT_NE(&bf16_split_kernels(Isa::kAvx2), &bf16_split_kernels(Isa::kScalar));
  EXPECT_NE(&bf16_split_kernels(Isa::kAvx512), &bf16_split_kernels(Isa::kAvx2));
  EXPECT_EQ(&bf16_split_kernels(Isa::kAvx512Vbmi2), &bf16_split_kernels(Isa::kAvx512));
  EXPECT_EQ(&bf16_split_kernels(Isa::kAvx512Bf16), &bf16_split_kernels(Isa::kAvx512));
#endif
  EXPECT_EQ(&bf16_split_kernels(Isa::kNeon), &bf16_split_kernels(Isa::kScalar));
}

TEST(Bf16SplitDeathTest, PlanesOfOtherSizesAreOurBug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Plane words(10), e(5), sm(4);
  EXPECT_DEATH(split_bf16(words, e, sm), "internal error");
  EXPECT_DEATH(merge_bf16(e, sm, words), "internal error");
}

}  // namespace
}  // namespace sluice::codec
