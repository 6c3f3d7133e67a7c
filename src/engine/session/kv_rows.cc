#include "engine/session/kv_rows.h"

#include "base/error.h"

namespace sluice::engine {
namespace {

// Keys or values: `heads` × `columns` elements a row.
struct Half {
  std::byte* data;
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

  kernels::CacheView view(const std::uint32_t* blocks) const {
    kernels::CacheView view;
    view.data = data + scale_bytes();
    view.dtype = dtype;
    view.row_elements = row_elements();
    view.head_stride = columns;
    if (scale_bytes() != 0) view.scales = reinterpret_cast<const float*>(data);
    view.scale_stride = rows;
    view.blocks = blocks;
    return view;
  }
  kernels::CacheRow row(std::size_t at) const {
    SLUICE_CHECK(at < rows);
    kernels::CacheRow row;
    row.data = data + scale_bytes() + at * row_bytes();
    row.dtype = dtype;
    row.heads = heads;
    row.columns = columns;
    if (scale_bytes() != 0) row.scales = reinterpret_cast<float*>(data) + at;
    row.scale_stride = rows;
    return row;
  }
};

Half keys_of(std::byte* data, const AttentionDims& dims, DType dtype, std::size_t rows) {
  return {data, dims.kv_heads, dims.key_dim, rows, dtype};
}

Half values_of(std::byte* data, const AttentionDims& dims, DType dtype, std::size_t rows) {
  return {data, dims.kv_heads, dims.cache_value_dim, rows, dtype};
}

}  // namespace

Bytes KvRows::bytes(const AttentionDims& dims, DType dtype, std::size_t rows) {
  const Bytes keys = keys_of(nullptr, dims, dtype, rows).bytes();
  return keys + (dims.value_row != 0 ? values_of(nullptr, dims, dtype, rows).bytes() : 0);
}

std::byte* KvRows::values_begin() const { return data_ + keys_of(data_, dims_, dtype_, rows_).bytes(); }

kernels::CacheView KvRows::keys(const std::uint32_t* blocks) const {
  return keys_of(data_, dims_, dtype_, rows_).view(blocks);
}

kernels::CacheView KvRows::values(const std::uint32_t* blocks) const {
  if (dims_.value_row == 0) return keys(blocks);
  return values_of(values_begin(), dims_, dtype_, rows_).view(blocks);
}

kernels::CacheRow KvRows::key_row(std::size_t row) const {
  return keys_of(data_, dims_, dtype_, rows_).row(row);
}

kernels::CacheRow KvRows::value_row(std::size_t row) const {
  return values_of(values_begin(), dims_, dtype_, rows_).row(row);
}

}  // namespace sluice::engine
