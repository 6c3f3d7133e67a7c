// Bytes of a stored matrix, wherever it is.
#pragma once

#include <cstddef>

#include "base/bytes.h"
#include "codec/matrix_format.h"

namespace sluice::kernels {

inline Bytes plane_bytes(const codec::MatrixRef& matrix, std::size_t plane) {
  if (matrix.format->planes[plane].bytes != nullptr) return matrix.format->plane_bytes(matrix.shape, plane);
  return matrix.chunks.empty() ? 0 : matrix.chunks.back().place + matrix.chunks.back().bytes;
}

// Counts the planes that are there; 0 for no matrix.
inline Bytes matrix_bytes(const codec::MatrixRef& matrix) {
  Bytes bytes = 0;
  for (std::size_t plane = 0; !matrix.empty() && plane < matrix.format->plane_count(); ++plane)
    if (matrix.planes[plane]) bytes += plane_bytes(matrix, plane);
  return bytes;
}

}  // namespace sluice::kernels
