#include "codec/exponents/entropy.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "codec/exponents/bf16_split.h"

namespace sluice::codec {
namespace {

std::vector<std::byte> words_of(const std::vector<std::uint16_t>& values) {
  std::vector<std::byte> words;
  for (const std::uint16_t v : values) {
    words.push_back(static_cast<std::byte>(v & 0xff));
    words.push_back(static_cast<std::byte>(v >> 8));
  }
  return words;
}

TEST(Entropy, OfNothingAndOfOneExponentIsZero) {
  ExponentHistogram histogram;
  EXPECT_EQ(histogram.entropy_bits(), 0.0);
  histogram.add_words(words_of(std::vector<std::uint16_t>(1001, 0x3F80)));
  EXPECT_EQ(histogram.entropy_bits(), 0.0);
  EXPECT_FALSE(std::signbit(histogram.entropy_bits()));
  EXPECT_EQ(histogram.count(0x7F), 1001u);
  EXPECT_EQ(histogram.total(), 1001u);
}

TEST(Entropy, OfAllWordsIsEightBits) {
  std::vector<std::uint16_t> all;
  for (unsigned w = 0; w < 65'536; ++w) all.push_back(static_cast<std::uint16_t>(w));
  ExponentHistogram histogram;
  histogram.add_words(words_of(all));
  EXPECT_DOUBLE_EQ(histogram.entropy_bits(), 8.0);
  for (unsigned e = 0; e < 256; ++e) EXPECT_EQ(histogram.count(static_cast<std::uint8_t>(e)), 256u);
}

TEST(Entropy, OfKnownDistributions) {
  ExponentHistogram halves;  // 1/2, 1/4, 1/8, 1/8: 1.75 bits
  halves.add_words(words_of({0x0000, 0x8000, 0x0001, 0x007f, 0x0080, 0x8080, 0x0100, 0x0180}));
  EXPECT_DOUBLE_EQ(halves.entropy_bits(), 1.75);
}

TEST(Entropy, PlanesWordsAndSumsAgree) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::normal_distribution<float> weights(0.0f, 0.02f);
  std::vector<std::uint16_t> values(10'003);
  for (std::uint16_t& v : values)
    v = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(weights(random)) >> 16);
  const std::vector<std::byte> words = words_of(values);
  std::vector<std::byte> e(values.size()), sm(values.size());
  split_bf16(words, e, sm);

  ExponentHistogram whole, plane, parts;
  whole.add_words(words);
  plane.add_exponents(e);
  const std::size_t cut = 2 * (random() % values.size());
  parts.add_words(std::span(words).first(cut));
  ExponentHistogram rest;
  rest.add_words(std::span(words).subspan(cut));
  parts += rest;
  for (unsigned i = 0; i < 256; ++i) {
    const auto exponent = static_cast<std::uint8_t>(i);
    EXPECT_EQ(whole.count(exponent), plane.count(exponent));
    EXPECT_EQ(whole.count(exponent), parts.count(exponent));
  }
  EXPECT_EQ(whole.entropy_bits(), parts.entropy_bits());
  EXPECT_GT(whole.entropy_bits(), 2.0) << "normal weights have about 2.5 bits of exponent";
  EXPECT_LT(whole.entropy_bits(), 3.0);
}

}  // namespace
}  // namespace sluice::codec
