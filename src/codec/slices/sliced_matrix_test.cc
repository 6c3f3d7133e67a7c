// Oracles: for the numbers quantise_affine(), which is tested against SPEC 7.4; for the planes a reader that
// was written only from docs/store-format.md, sections 4.2 and 4.3.
#include "codec/slices/sliced_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/float16.h"
#include "codec/slices/affine_group.h"
#include "codec/slices/int8_matrix.h"

namespace sluice::codec {
namespace {

using ::testing::HasSubstr;
using Bytes8 = std::vector<std::uint8_t>;

// ---- The page

double binary16(const std::uint8_t* at) {
  const unsigned word = at[0] | at[1] << 8, exponent = word >> 10 & 31, mantissa = word & 1023;
  EXPECT_LT(word, 0x7c00u);
  return exponent == 0 ? std::ldexp(mantissa, -24)
                       : std::ldexp(1024 + mantissa, static_cast<int>(exponent) - 25);
}

// Reads a code of b bits from the cells that begin at `lines`.
unsigned code_at(const Bytes8& part, unsigned b, std::uint64_t columns, std::uint64_t row,
                 std::uint64_t column) {
  const std::uint64_t cell = row / 16 * ((columns + 31) / 32) + column / 32;
  const std::uint64_t r = row % 16, c = column % 32, byte = 4 * r + c % 4;
  const auto line = [&](std::uint64_t n) { return unsigned{part.at(64 * (b * cell + n) + byte)}; };
  if (b == 4) return line(c / 4 % 4) >> (c < 16 ? 0 : 4) & 15;
  const unsigned two = line(c / 4 % 2) >> (2 * (c / 8)) & 3;
  return b == 2 ? two : two | (line(2) >> (c / 4) & 1) << 2;
}

struct Read {
  double scale = 0;
  unsigned zero = 0, msb = 0, lsb = 0;
};
Read read(const Bytes8& msb, const Bytes8& lsb, const SlicedShape& shape, std::uint64_t row,
          std::uint64_t column) {
  const unsigned h = shape.bits.high, l = shape.bits.low;
  const std::uint64_t groups = (shape.columns + 31) / 32, n = (shape.rows + 15) / 16 * groups;
  const std::uint64_t at = (row / 16 * groups + column / 32) * 16 + row % 16;
  EXPECT_EQ(msb.size(), (64 * l + 48) * n);
  EXPECT_EQ(lsb.size(), 64 * (h - l) * n);
  return {binary16(&msb.at(64 * l * n + 2 * at)), msb.at((64 * l + 32) * n + at),
          code_at(msb, l, shape.columns, row, column), code_at(lsb, h - l, shape.columns, row, column)};
}

// ---- Random matrices

struct Matrix {
  DType dtype = DType::kBF16;
  std::uint64_t rows = 0, columns = 0;
  std::vector<std::byte> words;
  std::vector<double> values;
};

double value_of(DType dtype, const std::byte* at) {
  std::uint16_t word = 0;
  std::memcpy(&word, at, 2);
  if (dtype == DType::kBF16) return bf16_to_float(word);
  if (dtype == DType::kF16) return fp16_to_float(word);
  float value = 0;
  std::memcpy(&value, at, 4);
  return value;
}

// Groups of very different kinds: trained weights, one sign, few values that are exact halves of a scale,
// words with random bits, zeros.
Matrix random_matrix(DType dtype, std::uint64_t rows, std::uint64_t columns, std::mt19937_64& random) {
  Matrix m{dtype, rows, columns, {}, {}};
  const std::size_t width = dtype_bytes(dtype);
  m.words.resize(rows * columns * width);
  std::normal_distribution<float> normal(0.0f, 0.02f);
  unsigned kind = 0;
  for (std::uint64_t i = 0; i < rows * columns; ++i) {
    if (i % columns % 32 == 0) kind = static_cast<unsigned>(random() % 6);
    float value = normal(random);
    if (kind == 1) value = std::fabs(value) + 1;
    if (kind == 2) value = -std::fabs(value) * 1e-6f;
    if (kind == 3) value = (static_cast<float>(random() % 511) - 255) / 512;
    if (kind == 5) value = 0;
    std::byte* const at = m.words.data() + i * width;
    if (dtype == DType::kF32) {
      if (kind == 4) {
        const auto bits = static_cast<std::uint32_t>(random());
        value = std::bit_cast<float>(bits);
        if (!std::isfinite(value)) value = 1;
      }
      std::memcpy(at, &value, 4);
    } else {
      std::uint16_t word = dtype == DType::kBF16 ? float_to_bf16(value) : double_to_fp16(value);
      if (kind == 4) {
        word = static_cast<std::uint16_t>(random());
        const unsigned infinite = dtype == DType::kBF16 ? 0x7f80 : 0x7c00;
        if ((word & infinite) == infinite) word = 0x3c01;
      }
      std::memcpy(at, &word, 2);
    }
    m.values.push_back(value_of(dtype, at));
  }
  return m;
}

struct Planes {
  Bytes8 msb, lsb;
};
Planes quantised(const Matrix& m, const SlicedShape& shape) {
  Planes planes{Bytes8(shape.msb_bytes(), 0xEE), Bytes8(shape.lsb_bytes(), 0xEE)};
  auto* const msb = reinterpret_cast<std::byte*>(planes.msb.data());
  quantise_sliced(m.words, m.dtype, shape,
                  {msb, msb + shape.scales_offset(), msb + shape.zeros_offset(),
                   reinterpret_cast<std::byte*>(planes.lsb.data())});
  return planes;
}

SlicedShape shape_of(const Matrix& m, SliceBits bits) { return {{m.rows, m.columns}, bits}; }

std::vector<double> group_of(const Matrix& m, std::uint64_t row, std::uint64_t column) {
  const auto first = m.values.begin() + static_cast<std::ptrdiff_t>(row * m.columns + column);
  return {first, first + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(32, m.columns - column))};
}

constexpr unsigned kSeed = 71;

TEST(SlicedMatrix, HasTheCodesOfEveryGroupWhereThePageSays) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    for (const SliceBits bits : kStoredSliceBits) {
      for (const auto& [rows, columns] : std::vector<std::pair<int, int>>{
               {1, 1}, {16, 32}, {17, 33}, {40, 200}, {3, 64}, {33, 31}, {100, 320}}) {
        const Matrix m = random_matrix(dtype, static_cast<std::uint64_t>(rows),
                                       static_cast<std::uint64_t>(columns), random);
        const SlicedShape shape = shape_of(m, bits);
        const auto [msb, lsb] = quantised(m, shape);
        for (std::uint64_t row = 0; row < 16 * shape.strips(); ++row) {
          for (std::uint64_t column = 0; column < 32 * shape.groups(); ++column) {
            const bool real = row < m.rows && column < m.columns;
            const AffineGroup group = row < m.rows ? quantise_affine(group_of(m, row, column / 32 * 32),
                                                                     bits.high, ScaleType::kFp16)
                                                   : AffineGroup{.scale = 1, .zero = 0, .codes = {}};
            const Read found = read(msb, lsb, shape, row, column);
            ASSERT_EQ(found.scale, group.scale) << row << ", " << column;
            ASSERT_EQ(found.zero, group.zero) << row << ", " << column;
            ASSERT_EQ(found.msb << bits.shift() | found.lsb, real ? group.codes[column % 32] : group.zero)
                << row << ", " << column << ", " << slice_bits_text(bits) << " " << dtype_name(dtype);
          }
        }
      }
    }
  }
}

TEST(SlicedMatrix, ViewsAreThoseOfTheSpecification) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  for (const SliceBits bits : kStoredSliceBits) {
    const Matrix m = random_matrix(DType::kBF16, 21, 75, random);
    const SlicedShape shape = shape_of(m, bits);
    const auto [msb, lsb] = quantised(m, shape);
    const SlicedView both = sliced_view(shape, std::as_bytes(std::span(msb)), std::as_bytes(std::span(lsb)));
    const SlicedView alone = sliced_view(shape, std::as_bytes(std::span(msb)), {});
    std::vector<float> high(m.columns), low(m.columns), center(m.columns);
    for (std::uint64_t row = 0; row < m.rows; ++row) {
      dequantise_row(both, SliceView::kHigh, row, high);
      dequantise_row(alone, SliceView::kLow, row, low);
      dequantise_row(alone, SliceView::kCenter, row, center);
      for (std::uint64_t column = 0; column < m.columns; ++column) {
        const AffineGroup group =
            quantise_affine(group_of(m, row, column / 32 * 32), bits.high, ScaleType::kFp16);
        const unsigned code = group.codes[column % 32];
        ASSERT_EQ(static_cast<double>(high[column]), high_view(group, code));
        ASSERT_EQ(static_cast<double>(low[column]), low_view(group, code, bits.shift()));
        ASSERT_EQ(static_cast<double>(center[column]), center_view(group, code, bits.shift()));
      }
    }
  }
}

// Coded strip by strip, as a pack codes them, the arrays are the same.
TEST(SlicedMatrix, StripsAreCodedByThemselves) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  const Matrix m = random_matrix(DType::kBF16, 70, 100, random);
  for (const SliceBits bits : kStoredSliceBits) {
    const SlicedShape whole = shape_of(m, bits);
    const Planes expected = quantised(m, whole);
    Planes found{Bytes8(whole.msb_bytes()), Bytes8(whole.lsb_bytes())};
    auto* const msb = reinterpret_cast<std::byte*>(found.msb.data());
    auto* const lsb = reinterpret_cast<std::byte*>(found.lsb.data());
    for (std::uint64_t strip = 0; strip < whole.strips(); strip += 2) {
      const SlicedShape rows{strip_rows(whole, strip, 2), bits};
      const std::uint64_t first = strip * 16 * m.columns * 2, cells = strip * whole.groups();
      quantise_sliced(
          std::span(m.words).subspan(first, rows.rows * m.columns * 2), m.dtype, rows,
          {msb + strip * whole.strip_bytes(bits.low), msb + whole.scales_offset() + cells * 32,
           msb + whole.zeros_offset() + cells * 16, lsb + strip * whole.strip_bytes(bits.shift())});
    }
    EXPECT_EQ(found.msb, expected.msb);
    EXPECT_EQ(found.lsb, expected.lsb);
  }
}

// SPEC 4.1: an expert of 8 650 752 weights, three matrices of 1408 × 2048.
TEST(SlicedMatrix, SizesAreThoseOfTheTable) {
  const auto bytes = [](SliceBits bits) {
    const SlicedShape gate{{1408, 2048}, bits}, down{{2048, 1408}, bits};
    return std::pair(2 * gate.msb_bytes() + down.msb_bytes(), 2 * gate.lsb_bytes() + down.lsb_bytes());
  };
  EXPECT_EQ(bytes({8, 4}), std::pair(Bytes{5136384}, Bytes{4325376}));
  EXPECT_EQ(bytes({6, 3}), std::pair(Bytes{4055040}, Bytes{3244032}));
  EXPECT_EQ(bytes({4, 2}), std::pair(Bytes{2973696}, Bytes{2162688}));
}

// docs/store-format.md, the example of section 4.2.
TEST(SlicedMatrix, TheDocumentedExampleIsTrue) {
  Matrix m{DType::kF32, 1, 8, {}, {}};
  for (const float w : {-1.f, -.5f, 0.f, .25f, .5f, .75f, .875f, .9921875f}) {
    m.words.resize(m.words.size() + 4);
    std::memcpy(m.words.data() + m.words.size() - 4, &w, 4);
  }
  const auto [msb, lsb] = quantised(m, shape_of(m, {8, 4}));
  Bytes8 expected_msb(304), expected_lsb(256);
  const std::uint8_t lines[4][4] = {
      {0x80, 0x84, 0x88, 0x8a}, {0x8c, 0x8e, 0x8f, 0x8f}, {0x88, 0x88, 0x88, 0x88}, {0x88, 0x88, 0x88, 0x88}};
  for (std::size_t a = 0; a < 4; ++a) std::memcpy(&expected_msb[64 * a], lines[a], 4);
  for (std::size_t r = 0; r < 16; ++r) expected_msb[256 + 2 * r + 1] = r == 0 ? 0x20 : 0x3c;
  expected_msb[288] = 0x80;
  expected_lsb[67] = 0x0f;
  EXPECT_EQ(msb, expected_msb);
  EXPECT_EQ(lsb, expected_lsb);
}

template <class Code>
std::string error_of(const Code& code) {
  try {
    code();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalid);
    return error.what();
  }
  return "no error";
}

TEST(SlicedMatrix, WeightsWithoutAValueAreNamed) {
  std::mt19937_64 random(kSeed);
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    Matrix m = random_matrix(dtype, 20, 70, random);
    const std::size_t width = dtype_bytes(dtype), at = (18 * 70 + 67) * width;
    for (const float bad :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      const std::uint16_t word = dtype == DType::kBF16 ? float_to_bf16(bad) : double_to_fp16(bad);
      std::memcpy(m.words.data() + at, dtype == DType::kF32 ? static_cast<const void*>(&bad) : &word, width);
      EXPECT_THAT(error_of([&] { quantised(m, shape_of(m, {8, 4})); }), HasSubstr("row 18, column 67"));
      std::vector<std::byte> codes(4096 * 8), scales(4096);
      EXPECT_THAT(error_of([&] {
                    quantise_int8(m.words, dtype, {{20, 70}}, codes.data(), scales.data(), 100);
                  }),
                  HasSubstr("row 118, column 67"));
    }
  }
}

// ---- 8 bits

TEST(Int8Matrix, HasTheCodesOfEveryGroupWhereThePageSays) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    for (const auto& [rows, columns] :
         std::vector<std::pair<std::uint64_t, std::uint64_t>>{{1, 1}, {17, 129}, {32, 256}, {5, 360}}) {
      const Matrix m = random_matrix(dtype, rows, columns, random);
      const Int8Shape shape{{rows, columns}};
      Bytes8 matrix(shape.bytes(), 0xEE);
      auto* const bytes = reinterpret_cast<std::byte*>(matrix.data());
      quantise_int8(m.words, dtype, shape, bytes, bytes + shape.scales_offset());
      const std::uint64_t cells = (columns + 31) / 32, scales = 512 * cells * ((rows + 15) / 16);
      ASSERT_EQ(matrix.size(), scales + (rows + 15) / 16 * ((columns + 127) / 128) * 32);
      std::vector<float> row_values(columns);
      for (std::uint64_t row = 0; row < 16 * ((rows + 15) / 16); ++row) {
        if (row < rows) dequantise_int8_row(std::as_bytes(std::span(matrix)), shape, row, row_values);
        for (std::uint64_t column = 0; column < 32 * cells; ++column) {
          const std::uint64_t cell = row / 16 * cells + column / 32, c = column % 32;
          const int code = static_cast<std::int8_t>(matrix[64 * (8 * cell + c / 4) + 4 * (row % 16) + c % 4]);
          const std::uint64_t group = row / 16 * ((columns + 127) / 128) + column / 128;
          const double scale = binary16(&matrix[scales + 32 * group + 2 * (row % 16)]);
          if (row >= rows || column >= columns) {
            ASSERT_EQ(code, 0);
            continue;
          }
          double largest = 0;
          for (std::uint64_t i = column / 128 * 128; i < std::min(columns, column / 128 * 128 + 128); ++i)
            largest = std::max(largest, std::fabs(m.values[row * columns + i]));
          ASSERT_EQ(scale, largest == 0 ? 1.0 : fp16_scale(largest / 127));
          const double exact = std::floor(m.values[row * columns + column] / scale + 0.5);
          ASSERT_EQ(code, std::min(std::max(exact, -127.0), 127.0)) << row << ", " << column;
          ASSERT_EQ(static_cast<double>(row_values[column]), scale * code);
        }
      }
    }
  }
}

}  // namespace
}  // namespace sluice::codec
