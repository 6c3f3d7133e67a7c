// Three formats for tests, unlike any of the program's: docs/adding-a-format.md follows them. Each comes with
// a coder, which need not be good.
//   toy8     blocks of 32 elements of a row, 34 bytes: a binary16 scale s, then 32 signed bytes q.  s·q
//   toyfp8   a plane of codes, a byte an element (sign, 4 bits of exponent, bias 7, 3 bits of mantissa;
//            0x7f and 0xff are no numbers), and a plane of fp32 scales, one for 128 × 128 elements, ragged
//            at the ends of rows and columns.  scale · code, rounded once
//   toy256   blocks of 256 elements of a row, 132 bytes: binary16 scale s and minimum m, then 128 bytes with
//            two codes q of 4 bits each, the lower one first.  s·q − m, rounded once
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/float16.h"
#include "codec/matrix_format.h"
#include "device/space.h"

namespace sluice::codec::testing {

inline const std::byte* toy_plane(const MatrixRef& matrix, std::size_t plane) {
  return device::host_space().pointer(matrix.planes[plane]);
}
template <class Value>
Value toy_load(const std::byte* at) {
  Value value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}
inline float toy_half(const std::byte* at) { return fp16_to_float(toy_load<std::uint16_t>(at)); }

[[noreturn]] inline void throw_toy(std::string_view what, std::uint64_t index) {
  throw Error(ErrorKind::kCorrupt, "a matrix has a scale or code that is no number")
      .found(std::string(what) + " " + std::to_string(index));
}

// Calls each(index, scale) for the binary16 at the beginning of every block of one plane.
template <Bytes kBlock, class Each>
void each_toy_scale(const MatrixRef& matrix, const Each& each) {
  const Bytes bytes = matrix.format->plane_bytes(matrix.shape, 0);
  for (Bytes at = 0; at < bytes; at += kBlock) each(at / kBlock, toy_half(toy_plane(matrix, 0) + at));
}

inline constexpr MatrixFormat kToy8 = {
    .name = "toy8",
    .planes = {{{"blocks", bytes_in_blocks<1, 32, 34>}}},
    .block = {1, 32},
    .ragged = false,
    .input = InputForm::kExact,
    .check =
        [](const MatrixRef& matrix) {
          each_toy_scale<34>(matrix, [](std::uint64_t i, float s) {
            if (!std::isfinite(s)) throw_toy("block", i);
          });
        },
    .row =
        [](const MatrixRef& matrix, std::uint64_t row, float* out) {
          const std::byte* block =
              toy_plane(matrix, 0) + row * matrix.format->plane_bytes({1, matrix.shape.columns}, 0);
          for (std::uint64_t c = 0; c < matrix.shape.columns; c += 32, block += 34)
            for (std::uint64_t i = 0; i < 32; ++i)
              out[c + i] = toy_half(block) * static_cast<float>(static_cast<std::int8_t>(block[2 + i]));
        },
};

inline float toy_fp8(std::byte code) {
  const auto bits = std::to_integer<unsigned>(code);
  const unsigned exponent = bits >> 3 & 15, mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
  const float size = exponent == 0
                         ? std::ldexp(static_cast<float>(mantissa), -9)
                         : std::ldexp(static_cast<float>(8 + mantissa), static_cast<int>(exponent) - 10);
  return (bits & 128) != 0 ? -size : size;
}

inline constexpr MatrixFormat kToyFp8 = {
    .name = "toyfp8",
    .planes = {{{"codes", bytes_in_blocks<1, 1, 1>}, {"scales", bytes_in_blocks<128, 128, 4>}}},
    .block = {128, 128},
    .input = InputForm::kExact,
    .check =
        [](const MatrixRef& matrix) {
          for (std::uint64_t i = 0; i < matrix.shape.elements(); ++i)
            if (std::isnan(toy_fp8(toy_plane(matrix, 0)[i]))) throw_toy("element", i);
          for (Bytes at = 0; at < matrix.format->plane_bytes(matrix.shape, 1); at += 4)
            if (!std::isfinite(toy_load<float>(toy_plane(matrix, 1) + at))) throw_toy("scale", at / 4);
        },
    .row =
        [](const MatrixRef& matrix, std::uint64_t row, float* out) {
          const std::uint64_t columns = matrix.shape.columns;
          const std::byte* const codes = toy_plane(matrix, 0) + row * columns;
          const std::byte* const scales = toy_plane(matrix, 1) + row / 128 * ((columns + 127) / 128) * 4;
          for (std::uint64_t c = 0; c < columns; ++c)
            out[c] = toy_load<float>(scales + c / 128 * 4) * toy_fp8(codes[c]);
        },
};

inline constexpr MatrixFormat kToy256 = {
    .name = "toy256",
    .planes = {{{"blocks", bytes_in_blocks<1, 256, 132>}}},
    .block = {1, 256},
    .ragged = false,
    .input = InputForm::kExact,
    .check =
        [](const MatrixRef& matrix) {
          each_toy_scale<132>(matrix, [](std::uint64_t i, float s) {
            if (!std::isfinite(s)) throw_toy("block", i);
          });
        },
    .row =
        [](const MatrixRef& matrix, std::uint64_t row, float* out) {
          const std::byte* block =
              toy_plane(matrix, 0) + row * matrix.format->plane_bytes({1, matrix.shape.columns}, 0);
          for (std::uint64_t c = 0; c < matrix.shape.columns; c += 256, block += 132)
            for (std::uint64_t i = 0; i < 256; ++i) {
              const unsigned code = std::to_integer<unsigned>(block[4 + i / 2]) >> 4 * (i % 2) & 15;
              const float product = toy_half(block) * static_cast<float>(code);  // exact
              out[c + i] = product - toy_half(block + 2);
            }
        },
};

inline constexpr const MatrixFormat* kToys[] = {&kToy8, &kToyFp8, &kToy256};

// A matrix in host memory that owns its planes.
struct ToyMatrix {
  const MatrixFormat* format = nullptr;
  MatrixShape shape;
  std::vector<std::vector<std::byte>> planes;
  MatrixRef ref() const {
    MatrixRef matrix{format, shape};
    for (std::size_t plane = 0; plane < planes.size(); ++plane)
      matrix.planes[plane] = device::host_space().address(planes[plane].data());
    return matrix;
  }
  // As fp32 words, by the definition of the format.
  std::vector<float> floats() const {
    std::vector<float> all(shape.elements());
    for (std::uint64_t r = 0; r < shape.rows; ++r) row_to_float(ref(), r, all.data() + r * shape.columns);
    return all;
  }
};

inline void toy_store_half(float value, std::byte* at) {
  const std::uint16_t word = double_to_fp16(value);
  std::memcpy(at, &word, sizeof(word));
}

// The toy nearest to `numbers`, more or less. REQUIRES: format.fits(shape).
inline ToyMatrix toy_matrix(const MatrixFormat& format, MatrixShape shape, std::span<const float> numbers) {
  SLUICE_CHECK(format.fits(shape), std::string(format.name));
  ToyMatrix toy{&format, shape, {}};
  for (std::size_t plane = 0; plane < format.plane_count(); ++plane)
    toy.planes.emplace_back(format.plane_bytes(shape, plane));
  std::byte* const first = toy.planes[0].data();
  if (&format == &kToyFp8) {
    for (std::uint64_t i = 0; i < shape.elements(); ++i) {  // scales of 1/8, 2/8 … by block
      const std::uint64_t block =
          i / shape.columns / 128 * ((shape.columns + 127) / 128) + i % shape.columns / 128;
      const float scale = 0.125f * static_cast<float>(1 + block % 3);
      std::memcpy(toy.planes[1].data() + 4 * block, &scale, 4);
      const float wanted = numbers[i] / scale;
      unsigned nearest = 0;
      for (unsigned code = 0; code < 127; ++code)
        if (std::fabs(toy_fp8(std::byte(code)) - std::fabs(wanted)) <
            std::fabs(toy_fp8(std::byte(nearest)) - std::fabs(wanted)))
          nearest = code;
      first[i] = static_cast<std::byte>(nearest | (wanted < 0 ? 128u : 0u));
    }
    return toy;
  }
  const std::uint64_t length = format.block.columns;
  for (std::uint64_t block = 0; block < shape.elements() / length; ++block) {
    const std::span<const float> own = numbers.subspan(block * length, length);
    const float most = *std::ranges::max_element(own), least = *std::ranges::min_element(own);
    if (&format == &kToy8) {
      std::byte* const at = first + block * 34;
      toy_store_half(std::max(most, -least) / 127, at);
      const float scale = std::max(toy_half(at), 1e-6f);
      for (std::uint64_t i = 0; i < length; ++i)
        at[2 + i] = static_cast<std::byte>(
            static_cast<std::int8_t>(std::clamp(std::nearbyint(own[i] / scale), -127.0f, 127.0f)));
      continue;
    }
    std::byte* const at = first + block * 132;
    toy_store_half((most - least) / 15, at);
    toy_store_half(-least, at + 2);
    const float scale = std::max(toy_half(at), 1e-6f), minimum = toy_half(at + 2);
    for (std::uint64_t i = 0; i < length; ++i) {
      const auto code =
          static_cast<unsigned>(std::clamp(std::nearbyint((own[i] + minimum) / scale), 0.0f, 15.0f));
      at[4 + i / 2] |= static_cast<std::byte>(code << 4 * (i % 2));
    }
  }
  return toy;
}

}  // namespace sluice::codec::testing
