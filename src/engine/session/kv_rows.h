// Where the keys and values of one layer lie: for each of some rows, what one position adds to the layer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/dtype.h"
#include "engine/session/attention_dims.h"
#include "kernels/attention/attention.h"

namespace sluice::engine {

// Non-owning view of bytes() bytes: the keys' scales, if the type has any, by group and row; the keys' rows;
// then the values' scales and rows, where a model caches values by themselves. For MLA the values are the
// first part of the key rows. Thread-compatible.
class KvRows {
 public:
  // `dtype`: BF16, F32 or I8.
  static Bytes bytes(const AttentionDims& dims, DType dtype, std::size_t rows);
  KvRows(std::byte* data, const AttentionDims& dims, DType dtype, std::size_t rows)
      : data_(data), dims_(dims), dtype_(dtype), rows_(rows) {}

  // `blocks`: which rows hold which positions (kernels::CacheView); null: row p holds position p.
  kernels::CacheView keys(const std::uint32_t* blocks = nullptr) const;
  kernels::CacheView values(const std::uint32_t* blocks = nullptr) const;
  // Where to write a row. Values only where value_row of the dimensions is not 0.
  kernels::CacheRow key_row(std::size_t row) const;
  kernels::CacheRow value_row(std::size_t row) const;

 private:
  std::byte* values_begin() const;

  std::byte* data_;
  const AttentionDims& dims_;
  DType dtype_;
  std::size_t rows_;
};

}  // namespace sluice::engine
