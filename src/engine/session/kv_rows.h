// Where the keys and values of one layer lie: for each of some rows, what one position adds to the layer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/dtype.h"
#include "device/address.h"
#include "engine/session/attention_dims.h"
#include "kernels/ops/floats.h"

namespace sluice::engine {

// Non-owning view of bytes() bytes, by their address: the keys' scales, if the type has any, by group and
// row; the keys' rows; then the values' scales and rows, where a model caches values by themselves. For MLA
// the values are the first part of the key rows. Thread-compatible.
class KvRows {
 public:
  // `dtype`: BF16, F32 or I8.
  static Bytes bytes(const AttentionDims& dims, DType dtype, std::size_t rows);
  KvRows(device::Address begin, const AttentionDims& dims, DType dtype, std::size_t rows)
      : begin_(begin), dims_(dims), dtype_(dtype), rows_(rows) {}

  // `blocks`: which rows hold which positions; null: row p holds position p. Values are written only where
  // value_row of the dimensions is not 0.
  kernels::CacheRows keys(const std::uint32_t* blocks = nullptr) const;
  kernels::CacheRows values(const std::uint32_t* blocks = nullptr) const;

 private:
  device::Address begin_;
  const AttentionDims& dims_;
  DType dtype_;
  std::size_t rows_;
};

}  // namespace sluice::engine
