// The kernels of coded_blocks.h by instruction set, called directly: a CPU uses only some of those that it
// could. The oracle is the scalar kernel, which coded_blocks_test.cc compares with sums in double.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/machine/cpu.h"
#include "kernels/kernel_table.h"
#include "kernels/products/blocks/block_test_data.h"
#include "kernels/products/blocks/coded_blocks.h"
#include "kernels/products/blocks/coded_blocks_impl.h"
#include "kernels/products/format_kernels.h"

namespace sluice::kernels {
namespace {

struct CodedSet {
  std::string name;
  const CodedBlockKernels* kernels;
  bool available;  // this CPU has their instructions
};

std::vector<CodedSet> coded_sets() {
  const CpuInfo cpu = cpu_info();
  [[maybe_unused]] const auto has = [&](const char* feature) {
    return std::ranges::count(cpu.features, feature) != 0;
  };
#if defined(__x86_64__)
  const bool avx2 = std::ranges::count(available_isas(), Isa::kAvx2) != 0,
             avx512 = std::ranges::count(available_isas(), Isa::kAvx512) != 0;
  return {{"avx2", &kCodedBlocksAvx2, avx2},
          {"avx512", &kCodedBlocksAvx512, avx512},
          {"avx512vnni", &kCodedBlocksAvx512Vnni, avx512 && has("avx512vnni")}};
#elif defined(__aarch64__)
  return {{"neon", &kCodedBlocksNeon, true}, {"neondotprod", &kCodedBlocksNeonDotprod, has("asimddp")}};
#else
  return {};
#endif
}

RowsKernel BlockKernels::*kernel_of(const codec::MatrixFormat& format) {
  using Row = std::pair<const codec::MatrixFormat*, RowsKernel BlockKernels::*>;
  static const Row kRows[] = {
      {&codec::kFormatQ40, &BlockKernels::q4_0},     {&codec::kFormatQ41, &BlockKernels::q4_1},
      {&codec::kFormatQ50, &BlockKernels::q5_0},     {&codec::kFormatQ51, &BlockKernels::q5_1},
      {&codec::kFormatQ80, &BlockKernels::q8_0},     {&codec::kFormatQ2K, &BlockKernels::q2_k},
      {&codec::kFormatQ3K, &BlockKernels::q3_k},     {&codec::kFormatQ4K, &BlockKernels::q4_k},
      {&codec::kFormatQ5K, &BlockKernels::q5_k},     {&codec::kFormatQ6K, &BlockKernels::q6_k},
      {&codec::kFormatIq4Nl, &BlockKernels::iq4_nl}, {&codec::kFormatIq4Xs, &BlockKernels::iq4_xs},
      {&codec::kFormatMxfp4, &BlockKernels::mxfp4},  {&codec::kFormatMxfp4Pair, &BlockKernels::mxfp4_pair}};
  return std::ranges::find(kRows, &format, &Row::first)->second;
}

// A product with rows [begin, end); the others stay as they were.
std::vector<float> rows_by(const CodedBlockKernels& set, const GuardedBlocks& matrix,
                           const std::vector<float>& x, std::size_t tokens, std::span<const float> bias,
                           std::size_t begin, std::size_t end) {
  const Context ctx{.isa = Isa::kScalar, .activations = ActivationForm::kInt8};
  const codec::MatrixRef& w = matrix.ref();
  const std::size_t floats = activation_floats(w);
  std::vector<float> arranged(tokens * floats), y(tokens * w.shape.rows, -1.0f);
  arrange_for(ctx, w, x.data(), tokens, w.shape.columns, arranged.data());
  GuardedBytes guarded(bytes_of(arranged));
  const Product product{
      .x = guarded.floats(), .tokens = tokens, .w = w, .bias = bias, .y = y.data(), .y_stride = w.shape.rows};
  (set.of.*kernel_of(*w.format))(product_args(product, guarded.floats(), floats, tokens, y.data()), begin,
                                 end);
  return y;
}

void expect_scalar_bits(const GuardedBlocks& matrix, const std::vector<float>& x, std::size_t tokens,
                        std::span<const float> bias, std::size_t begin, std::size_t end) {
  const codec::MatrixRef& w = matrix.ref();
  const std::vector<float> wanted = rows_by(kCodedBlocksScalar, matrix, x, tokens, bias, begin, end);
  for (const CodedSet& set : coded_sets()) {
    if (!set.available) continue;
    ASSERT_TRUE(same_bits(wanted, rows_by(*set.kernels, matrix, x, tokens, bias, begin, end)))
        << w.format->name << ' ' << set.name << ' ' << w.shape.rows << 'x' << w.shape.columns << ", rows "
        << begin << " to " << end << ", " << tokens << " tokens, seed " << test_seed();
  }
}

// Every number of rows and of tokens up to more than a tile has, and every number of groups up to two strips
// and one.
TEST(CodedBlocksOfSets, HaveTheBitsOfScalarInEveryShape) {
  std::mt19937_64 random = test_random(311);
  for (const Blocks& blocks : all_blocks()) {
    const std::size_t block = blocks.format.block.columns, most = block == 32 ? 17 : 3;
    for (std::size_t i = 0; i < 34; ++i) {
      const std::size_t rows = 1 + i, tokens = 1 + (i * 7 + random() % 2) % 34,
                        columns = block * (1 + i % most);
      const GuardedBlocks matrix(blocks, {rows, columns},
                                 i % 2 == 0 ? BlockScales::kAlike : BlockScales::kAny, random);
      const std::vector<float> x = i % 5 == 0 ? wild_floats(random, tokens * columns)
                                              : normal_floats(random, tokens * columns),
                               bias = normal_floats(random, random() % 2 * rows);
      expect_scalar_bits(matrix, x, tokens, bias, 0, rows);
      const std::size_t begin = random() % rows, end = begin + random() % (rows - begin + 1);
      expect_scalar_bits(matrix, x, tokens, bias, begin, end);
    }
  }
}

// Codes, scales and minima at the ends of their ranges with activations that are all codes of ±127.
TEST(CodedBlocksOfSets, HaveTheBitsOfScalarAtTheEndsOfRanges) {
  std::mt19937_64 random = test_random(312);
  static constexpr unsigned kBytes[] = {0x00, 0xff, 0x80, 0x7f, 0x0f, 0xf0, 0x88, 0x77};
  for (const Blocks& blocks : all_blocks()) {
    const codec::MatrixFormat& format = blocks.format;
    const codec::MatrixShape shape{19, format.block.columns == 32 ? 288u : 256u};
    for (int round = 0; round < 40; ++round) {
      const std::byte all = static_cast<std::byte>(kBytes[random() % std::size(kBytes)]);
      std::vector<std::vector<std::byte>> planes;
      for (std::size_t p = 0; p < format.plane_count(); ++p) {
        std::vector<std::byte>& plane = planes.emplace_back(format.plane_bytes(shape, p));
        for (std::byte& byte : plane)
          byte = round % 2 == 0 ? all : static_cast<std::byte>(kBytes[random() % std::size(kBytes)]);
        const std::size_t block = format.plane_bytes(format.block, p);
        constexpr std::uint16_t kOne = 0x3c00;
        for (std::size_t at = 0; at < plane.size(); at += block) {
          for (const std::size_t half : blocks.halves) std::memcpy(&plane[at + half], &kOne, sizeof(kOne));
          if (blocks.halves.empty() && p + 1 == format.plane_count()) plane[at] = std::byte{127};
        }
      }
      const GuardedBlocks matrix(format, shape, planes);
      const std::size_t tokens = 1 + random() % 18;
      std::vector<float> x(tokens * shape.columns, round % 4 < 2 ? 127.0f : -127.0f);
      if (round % 3 == 0) {
        for (float& number : x) number = random() % 2 == 0 ? 127.0f : -127.0f;
      }
      expect_scalar_bits(matrix, x, tokens, {}, 0, shape.rows);
    }
  }
}

// A test that compares an instruction set with scalar proves nothing if both run the same code: no set's row
// of a format may be that of a simpler set.
TEST(CodedBlocksOfSets, NoRowStepsDown) {
  std::vector<CodedSet> sets = coded_sets();
  sets.push_back({"scalar", &kCodedBlocksScalar, true});
  std::size_t formats = 0;
  for (const FormatRow& row : format_rows()) {
    if (row.format->input != codec::InputForm::kBlocks) continue;
    ++formats;
    for (const CodedSet& a : sets) {
      for (const CodedSet& b : sets) {
        if (&a == &b) continue;
        EXPECT_NE(a.kernels->of.*kernel_of(*row.format), b.kernels->of.*kernel_of(*row.format))
            << row.format->name << ' ' << a.name << ' ' << b.name;
      }
    }
#if defined(__x86_64__)
    const RowsKernel avx512 = row.of(Isa::kAvx512).coded_rows;
    EXPECT_EQ(row.of(Isa::kAvx2).coded_rows, kCodedBlocksAvx2.of.*kernel_of(*row.format)) << row.format->name;
    EXPECT_TRUE(avx512 == kCodedBlocksAvx512.of.*kernel_of(*row.format) ||
                avx512 == kCodedBlocksAvx512Vnni.of.*kernel_of(*row.format))
        << row.format->name;
    for (const Isa isa : {Isa::kAvx512Vbmi2, Isa::kAvx512Bf16, Isa::kAmx})
      EXPECT_EQ(row.of(isa).coded_rows, avx512) << row.format->name << ' ' << isa_name(isa);
#elif defined(__aarch64__)
    const RowsKernel neon = row.of(Isa::kNeon).coded_rows;
    EXPECT_TRUE(neon == kCodedBlocksNeon.of.*kernel_of(*row.format) ||
                neon == kCodedBlocksNeonDotprod.of.*kernel_of(*row.format))
        << row.format->name;
#endif
  }
  EXPECT_EQ(formats, all_blocks().size());
}

}  // namespace
}  // namespace sluice::kernels
