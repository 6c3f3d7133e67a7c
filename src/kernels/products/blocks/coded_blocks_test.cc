// Oracles: sums in double of the numbers that a format's definition makes of the bytes and of the
// activations' codes, and the scalar kernels, which follow coded_blocks.h in plain code.
#include "kernels/products/blocks/coded_blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "base/machine/thread_pool.h"
#include "kernels/products/blocks/block_test_data.h"
#include "kernels/products/blocks/coded_blocks_impl.h"
#include "kernels/products/codes/activation_codes.h"
#include "kernels/products/codes/integer_impl.h"
#include "kernels/products/format_kernels.h"
#include "kernels/products/vector_products.h"

namespace sluice::kernels {
namespace {

using codec::MatrixShape;

Context coded_context(Isa isa, ThreadPool* pool = nullptr) {
  return {.pool = pool, .isa = isa, .activations = ActivationForm::kInt8};
}

std::vector<float> coded_product(Isa isa, const GuardedBlocks& matrix, const std::vector<float>& x,
                                 std::size_t tokens, std::span<const float> bias = {}) {
  return product_of(coded_context(isa), matrix.ref(), x, tokens, bias);
}

std::string text_of(const GuardedBlocks& matrix, Isa isa, std::size_t tokens) {
  const codec::MatrixRef& ref = matrix.ref();
  return std::string(ref.format->name) + ' ' + std::string(isa_name(isa)) + ' ' +
         std::to_string(ref.shape.rows) + 'x' + std::to_string(ref.shape.columns) + ", " +
         std::to_string(tokens) + " tokens, seed " + std::to_string(test_seed());
}

// A token as code_for_blocks() leaves it.
struct Coded {
  std::vector<float> floats;
  std::size_t columns;
  Coded(const std::vector<float>& x) : floats(block_code_floats(x.size())), columns(x.size()) {
    code_for_blocks({}, x.data(), 1, columns, columns, floats.data(), floats.size());
  }
  BlockCodes<const float> parts() const { return {floats.data(), columns}; }
  double number(std::size_t c) const {
    return static_cast<double>(parts().scales[c / 32]) * static_cast<std::int8_t>(parts().codes[c]);
  }
};

TEST(CodedBlocks, CodesAreThoseOfOtherProductsWithSumsOfHalves) {
  std::mt19937_64 random = test_random(301);
  for (const std::size_t columns : {32u, 64u, 256u, 288u, 2880u}) {
    ASSERT_LE(block_code_floats(columns), (columns + 63) / 64 * 64);
    const std::vector<float> x = wild_floats(random, columns);
    const Coded coded(x);
    const BlockCodes<const float> found = coded.parts();
    const std::size_t groups = columns / 32;
    std::vector<float> other(activation_code_floats(columns));
    code_activations({}, x.data(), 1, columns, columns, other.data(), other.size());
    const CodedToken<const float> wanted(other.data(), groups);
    ASSERT_EQ(std::memcmp(found.codes, wanted.codes, columns), 0);
    EXPECT_TRUE(same_bits({wanted.scales, groups}, {found.scales, groups}));
    EXPECT_TRUE(same_bits({wanted.minus_sums, groups}, {found.minus_sums, groups}));
    for (std::size_t g = 0; g < (groups + 7) / 8 * 8; ++g) {
      std::int16_t halves[2];
      std::memcpy(halves, found.minus_halves + 4 * g, sizeof(halves));
      for (std::size_t half = 0; half < 2; ++half) {
        int sum = 0;
        for (std::size_t i = 0; g < groups && i < 16; ++i)
          sum += static_cast<std::int8_t>(found.codes[32 * g + 16 * half + i]);
        EXPECT_EQ(halves[half], -sum) << g;
      }
      EXPECT_TRUE(g < groups || found.scales[g] == 0) << g;
    }
  }
}

// Within the bound of coded_blocks.h, with four times the largest weight of a group instead of its parts.
TEST(CodedBlocks, AreSumsOfNumbersAndCodes) {
  std::mt19937_64 random = test_random(302);
  for (const Blocks& blocks : all_blocks()) {
    for (const std::size_t columns : {blocks.format.block.columns, std::size_t{768}, std::size_t{2560}}) {
      const GuardedBlocks matrix(blocks, {5, columns}, BlockScales::kAlike, random);
      const std::vector<float> words = matrix.words(), x = normal_floats(random, columns),
                               bias = normal_floats(random, 5);
      const Coded coded(x);
      for (const Isa isa : available_isas()) {
        const std::vector<float> found = coded_product(isa, matrix, x, 1, bias);
        for (std::size_t r = 0; r < 5; ++r) {
          double sum = bias[r], all = std::abs(bias[r]);
          for (std::size_t g = 0; g < columns; g += 32) {
            double largest = 0, codes = 0;
            for (std::size_t c = g; c < g + 32; ++c) {
              const double word = words[r * columns + c];
              sum += word * coded.number(c);
              largest = std::max(largest, std::abs(word));
              codes += std::abs(coded.number(c));
            }
            all += 4 * largest * codes;
          }
          const double bound = (static_cast<double>(columns) / 128 + 6) * 0x1p-24 * all;
          EXPECT_NEAR(found[r], sum, bound) << text_of(matrix, isa, 1) << ", row " << r;
        }
      }
    }
  }
}

// The scales and minima of sub-blocks.
std::pair<std::size_t, std::size_t> inner_scales(const codec::MatrixFormat& format) {
  static const std::map<const codec::MatrixFormat*, std::pair<std::size_t, std::size_t>> kPlaces = {
      {&codec::kFormatQ2K, {0, 16}}, {&codec::kFormatQ3K, {96, 108}},  {&codec::kFormatQ4K, {4, 16}},
      {&codec::kFormatQ5K, {4, 16}}, {&codec::kFormatQ6K, {192, 208}}, {&codec::kFormatIq4Xs, {2, 8}}};
  const auto found = kPlaces.find(&format);
  return found == kPlaces.end() ? std::pair<std::size_t, std::size_t>() : found->second;
}

// One block in each of nine rows: every byte of codes and every byte of inner scales the same, d = dmin = m =
// 1.
GuardedBlocks even_blocks(const Blocks& blocks, std::byte codes, std::byte scales) {
  constexpr std::size_t kRows = 9;
  const codec::MatrixFormat& format = blocks.format;
  std::vector<std::vector<std::byte>> planes;
  for (std::size_t p = 0; p < format.plane_count(); ++p) {
    const std::size_t block = format.plane_bytes(format.block, p);
    std::vector<std::byte>& plane = planes.emplace_back(kRows * block, codes);
    for (std::size_t at = 0; at < plane.size(); at += block) {
      const auto [begin, end] = inner_scales(format);
      std::fill(plane.begin() + static_cast<std::ptrdiff_t>(at + begin),
                plane.begin() + static_cast<std::ptrdiff_t>(at + end), scales);
      for (const std::size_t half : blocks.halves) {
        constexpr std::uint16_t kOne = 0x3c00;
        std::memcpy(&plane[at + half], &kOne, sizeof(kOne));
      }
      if (blocks.halves.empty() && p + 1 == format.plane_count()) plane[at] = std::byte{127};
    }
  }
  return {format, {kRows, format.block.columns}, planes};
}

// With activations of whole numbers up to 127 nothing is rounded, so sums that a register cannot hold would
// show.
TEST(CodedBlocks, ExtremeCodesAreSummedExactly) {
  for (const Blocks& blocks : all_blocks()) {
    const std::size_t columns = blocks.format.block.columns;
    for (const unsigned code : {0x00u, 0xffu, 0x80u, 0x7fu, 0x0fu, 0xf0u, 0x88u, 0x77u}) {
      for (const unsigned scale : {0x00u, 0xffu, 0x80u, 0x7fu}) {
        const GuardedBlocks matrix =
            even_blocks(blocks, static_cast<std::byte>(code), static_cast<std::byte>(scale));
        const std::vector<float> words = matrix.words();
        for (const int signs : {0, 1, 2, 3}) {  // all plus, all minus, in turn, as the weights
          constexpr std::size_t kTokens = 7;
          std::vector<float> x(kTokens * columns);
          for (std::size_t i = 0; i < x.size(); ++i) {
            const bool minus =
                signs == 1 || (signs == 2 && i % 2 == 1) || (signs == 3 && words[i % columns] < 0);
            x[i] = minus ? -127.0f : 127.0f;
          }
          double sum = 0;
          for (std::size_t c = 0; c < columns; ++c) sum += static_cast<double>(words[c]) * x[c];
          for (const Isa isa : available_isas()) {
            for (const std::size_t tokens : {std::size_t{1}, kTokens}) {
              const std::vector<float> some(x.begin(),
                                            x.begin() + static_cast<std::ptrdiff_t>(tokens * columns));
              for (const float y : coded_product(isa, matrix, some, tokens))
                ASSERT_EQ(y, sum) << text_of(matrix, isa, tokens) << ", " << code << ' ' << scale;
            }
          }
        }
      }
    }
  }
}

TEST(CodedBlocks, HaveTheSameBitsOnEveryInstructionSetWithAnyThreadsAndTokens) {
  std::mt19937_64 random = test_random(303);
  ThreadPool three(3);
  for (const Blocks& blocks : all_blocks()) {
    const std::size_t block = blocks.format.block.columns;
    for (const auto& [rows, columns, tokens] : {std::array<std::size_t, 3>{1, block, 1},
                                                {7, 3 * block, 1},
                                                {37, 512 + block, 3},
                                                {21, 5 * block, 13},
                                                {18, 9 * block, 50},
                                                {300, 768, 1},
                                                {90, 1536, 6}}) {
      for (const BlockScales scales : {BlockScales::kAlike, BlockScales::kAny}) {
        const GuardedBlocks matrix(blocks, {rows, columns}, scales, random);
        const bool wild = scales == BlockScales::kAny && random() % 2 == 0;
        const std::vector<float> x =
            wild ? wild_floats(random, tokens * columns) : normal_floats(random, tokens * columns);
        const std::vector<float> bias = normal_floats(random, random() % 2 * rows);
        const std::vector<float> wanted = coded_product(Isa::kScalar, matrix, x, tokens, bias);
        for (const Isa isa : available_isas())
          for (ThreadPool* const pool : {static_cast<ThreadPool*>(nullptr), &three})
            ASSERT_TRUE(
                same_bits(wanted, product_of(coded_context(isa, pool), matrix.ref(), x, tokens, bias)))
                << text_of(matrix, isa, tokens);
        for (std::size_t t = 0; t < tokens; ++t) {
          const std::vector<float> one(&x[t * columns], &x[t * columns] + columns);
          for (const Isa isa : available_isas())
            ASSERT_TRUE(same_bits(std::span(wanted).subspan(t * rows, rows),
                                  coded_product(isa, matrix, one, 1, bias)))
                << text_of(matrix, isa, 1) << ", token " << t;
        }
      }
    }
  }
}

// Numbers of a block's scales that are zeros, subnormal or the largest.
TEST(CodedBlocks, HaveTheSameBitsWithExtremeScales) {
  std::mt19937_64 random = test_random(304);
  for (const Blocks& blocks : all_blocks()) {
    const codec::MatrixFormat& format = blocks.format;
    const MatrixShape shape{11, 3 * format.block.columns};
    for (int round = 0; round < 20; ++round) {
      std::vector<std::vector<std::byte>> planes;
      for (std::size_t p = 0; p < format.plane_count(); ++p) {
        std::vector<std::byte>& plane = planes.emplace_back(format.plane_bytes(shape, p));
        fill_blocks(blocks, p, BlockScales::kAny, random, plane);
        const std::size_t block = format.plane_bytes(format.block, p);
        for (std::size_t at = 0; at < plane.size(); at += block) {
          static constexpr std::uint16_t kHalves[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff, 0xfbff};
          for (const std::size_t half : blocks.halves)
            std::memcpy(&plane[at + half], &kHalves[random() % std::size(kHalves)], sizeof(std::uint16_t));
          static constexpr unsigned kPowers[] = {0, 1, 2, 3, 127, 254};
          if (blocks.halves.empty() && p + 1 == format.plane_count())
            plane[at] = static_cast<std::byte>(kPowers[random() % std::size(kPowers)]);
        }
      }
      const GuardedBlocks matrix(format, shape, planes);
      std::vector<float> x = normal_floats(random, 6 * shape.columns);
      const float factor[] = {0, 0x1p-90f, 0x1p-99f, 1, 0x1p100f};
      for (std::size_t i = 0; i < x.size(); i += 16)
        for (std::size_t j = i, some = random() % 5; j < i + 16; ++j) x[j] *= factor[some];
      const std::vector<float> wanted = coded_product(Isa::kScalar, matrix, x, 6);
      for (const Isa isa : vector_isas())
        ASSERT_TRUE(same_bits(wanted, coded_product(isa, matrix, x, 6))) << text_of(matrix, isa, 6);
    }
  }
}

TEST(CodedBlocks, ZerosGiveTheBiasAndWhatIsNoNumberIsSeen) {
  std::mt19937_64 random = test_random(305);
  for (const Blocks& blocks : all_blocks()) {
    const GuardedBlocks matrix(blocks, {9, 768}, BlockScales::kAlike, random);
    const std::vector<float> bias = normal_floats(random, 9);
    for (const Isa isa : available_isas()) {
      std::vector<float> x(6 * 768);
      for (std::size_t t = 0; t < 6; ++t) {
        const std::vector<float> found = coded_product(isa, matrix, x, 6, bias);
        EXPECT_TRUE(same_bits(bias, std::span(found).subspan(t * 9, 9))) << text_of(matrix, isa, 6);
      }
      x[2 * 768 + 700] = INFINITY;
      const std::vector<float> found = coded_product(isa, matrix, x, 6, bias);
      for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_EQ(std::isnan(found[i]), i / 9 == 2) << text_of(matrix, isa, 6);
    }
  }
}

TEST(CodedBlocks, AreNearProductsWithFp32) {
  std::mt19937_64 random = test_random(306);
  for (const Blocks& blocks : all_blocks()) {
    const GuardedBlocks matrix(blocks, {200, 2048}, BlockScales::kAlike, random);
    const std::vector<float> x = normal_floats(random, 2048);
    const std::vector<float> exact = product_of({nullptr, Isa::kScalar}, matrix.ref(), x, 1, {}),
                             coded = coded_product(Isa::kScalar, matrix, x, 1);
    double apart = 0, all = 0;
    for (std::size_t r = 0; r < exact.size(); ++r) {
      apart += std::pow(static_cast<double>(coded[r]) - exact[r], 2);
      all += std::pow(static_cast<double>(exact[r]), 2);
    }
    const double error = std::sqrt(apart / all);
    std::cout << blocks.format.name << ": apart by " << error << std::endl;
    EXPECT_GT(error, 1e-4) << blocks.format.name;
    EXPECT_LT(error, 0.012) << blocks.format.name;
  }
}

// A gate and an up matrix in two formats, and a matrix of fp32 words, in one pass.
TEST(CodedBlocks, AndInProductsOfVectorsTogether) {
  std::mt19937_64 random = test_random(307);
  ThreadPool three(3);
  const std::vector<float> numbers = normal_floats(random, 96 * 256);
  const codec::MatrixRef words = codec::word_matrix(bytes_of(numbers).data(), DType::kF32, 96, 256);
  for (std::size_t i = 0; i < all_blocks().size(); ++i) {
    const GuardedBlocks up(all_blocks()[i], {96, 256}, BlockScales::kAlike, random),
        gate(all_blocks()[(i + 1) % all_blocks().size()], {96, 256}, BlockScales::kAlike, random);
    const std::vector<float> x = normal_floats(random, 256), bias = normal_floats(random, 96);
    for (const Isa isa : available_isas()) {
      for (const Products products : {Products::kExact, Products::kTiles}) {
        Context ctx = coded_context(isa, &three);
        ctx.products = products;
        const codec::MatrixRef refs[] = {up.ref(), gate.ref(), words};
        std::vector<std::vector<float>> inputs, found(3, std::vector<float>(96));
        std::vector<VectorProduct> all;
        for (const codec::MatrixRef& ref : refs) {
          inputs.emplace_back(activation_floats(ref));
          arrange_for(ctx, ref, x.data(), 1, 256, inputs.back().data());
        }
        for (std::size_t k = 0; k < 3; ++k)
          all.push_back({inputs[k].data(), &refs[k], found[k].data(), bias});
        multiply_vectors(ctx, all);
        for (std::size_t k = 0; k < 3; ++k)
          EXPECT_TRUE(same_bits(product_of(ctx, refs[k], x, 1, bias), found[k])) << isa_name(isa);
      }
    }
  }
}

// A test that compares an instruction set with scalar proves nothing if both run the same code.
TEST(CodedBlocks, AvxHasKernelsOfItsOwn) {
#if defined(__x86_64__)
  for (const FormatRow& row : format_rows()) {
    if (row.format->input != codec::InputForm::kBlocks) continue;
    EXPECT_NE(row.of(Isa::kAvx2).coded_rows, row.of(Isa::kScalar).coded_rows) << row.format->name;
  }
#endif
}

}  // namespace
}  // namespace sluice::kernels
