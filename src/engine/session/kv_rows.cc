#include "engine/session/kv_rows.h"

namespace sluice::engine {
namespace {

// Keys or values: `heads` × `columns` elements a row.
struct Half {
  device::Address begin;
  std::size_t heads, columns, rows;
  DType dtype;

  std::size_t row_elements() const {  // rows of codes are padded so that floats may follow
    const std::size_t elements = heads * columns;
    return dtype == DType::kI8 ? round_up(elements, sizeof(float)) : elements;
  }
  Bytes row_bytes() const { return row_elements() * dtype_bytes(dtype); }
  Bytes scale_bytes() const {
    return dtype == DType::kI8 ? Bytes{heads} * kernels::cache_groups(columns) * sizeof(float) * rows : 0;
  }
  Bytes bytes() const { return scale_bytes() + row_bytes() * rows; }

  kernels::CacheRows with(const std::uint32_t* blocks) const {
    return {.data = begin + scale_bytes(),
            .scales = scale_bytes() != 0 ? begin : device::Address{},
            .dtype = dtype,
            .rows = rows,
            .row_elements = row_elements(),
            .heads = heads,
            .columns = columns,
            .blocks = blocks};
  }
};

Half keys_of(device::Address begin, const AttentionDims& dims, DType dtype, std::size_t rows) {
  return {begin, dims.kv_heads, dims.key_dim, rows, dtype};
}

Half values_of(device::Address begin, const AttentionDims& dims, DType dtype, std::size_t rows) {
  return {begin, dims.kv_heads, dims.cache_value_dim, rows, dtype};
}

}  // namespace

Bytes KvRows::bytes(const AttentionDims& dims, DType dtype, std::size_t rows) {
  const Bytes keys = keys_of({}, dims, dtype, rows).bytes();
  return keys + (dims.value_row != 0 ? values_of({}, dims, dtype, rows).bytes() : 0);
}

kernels::CacheRows KvRows::keys(const std::uint32_t* blocks) const {
  return keys_of(begin_, dims_, dtype_, rows_).with(blocks);
}

kernels::CacheRows KvRows::values(const std::uint32_t* blocks) const {
  if (dims_.value_row == 0) return keys(blocks);
  const Bytes keys = keys_of(begin_, dims_, dtype_, rows_).bytes();
  return values_of(begin_ + keys, dims_, dtype_, rows_).with(blocks);
}

}  // namespace sluice::engine
