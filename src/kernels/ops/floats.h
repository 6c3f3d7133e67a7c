// What operations compute with (ops.h): numbers, vectors and caches by their addresses, wherever they are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "codec/matrix_format.h"
#include "device/address.h"
#include "kernels/attention/attention.h"

namespace sluice::kernels {

// fp32 numbers in the memory of a unit. Plain value, non-owning; it does not say how many there are: the
// operation that takes it does.
struct Floats {
  device::Address at;
  explicit operator bool() const { return static_cast<bool>(at); }
  Floats operator+(std::size_t count) const { return {at + count * sizeof(float)}; }
  bool operator==(const Floats&) const = default;
};

// The same activations in several forms, by form; null: not in that form (ArrangedInputs, by address).
using InputFloats = std::array<Floats, codec::kInputForms>;

// Weights of a norm, or a bias; empty: there is none.
struct Vector {
  Floats data;
  std::size_t size = 0;
};

// Cached keys or values of one layer (CacheView, CacheRow): `rows` rows of heads × columns elements.
struct CacheRows {
  device::Address data = {}, scales = {};  // scales: of I8 alone
  DType dtype = DType::kBF16;
  std::size_t rows = 0, row_elements = 0, heads = 0, columns = 0;
  // Which rows hold which positions, in the host's memory; null: row p holds position p. Operations copy what
  // they need of it when they are asked for.
  const std::uint32_t* blocks = nullptr;

  std::size_t row_of(std::size_t position) const {
    return blocks == nullptr ? position
                             : blocks[position / kCacheBlock] * kCacheBlock + position % kCacheBlock;
  }
  Bytes row_bytes() const { return row_elements * dtype_bytes(dtype); }
  Bytes data_bytes() const { return rows * row_bytes(); }
  std::size_t scale_floats() const {  // for each group of each head one of every row
    return scales ? heads * cache_groups(columns) * rows : 0;
  }
  // What kernels read and write, of rows whose bytes and scales are here.
  CacheView view(const std::byte* data, const float* scales) const {
    return {data, dtype, row_elements, columns, scales, scales != nullptr ? rows : 0, blocks};
  }
  CacheRow row(std::byte* data, float* scales, std::size_t at) const {
    return {data + at * row_bytes(), dtype, heads, columns, scales != nullptr ? scales + at : nullptr, rows};
  }
};

}  // namespace sluice::kernels
