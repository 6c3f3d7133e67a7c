// Operands of operations as pointers that kernels of a GPU use; nothing here reads through them.
#pragma once

#include <cstddef>

#include "device/access.h"
#include "kernels/ops/floats.h"
#include "kernels/products/matrix_bytes.h"

namespace sluice::kernels::gpu {

inline std::byte* bytes_at(const device::Access& access, device::Address at, Bytes bytes) {
  return at ? access.data(at, bytes) : nullptr;
}
inline float* floats_at(const device::Access& access, Floats floats, std::size_t count) {
  return reinterpret_cast<float*>(bytes_at(access, floats.at, count * sizeof(float)));
}
inline const float* vector_at(const device::Access& access, const Vector& vector) {  // null: there is none
  return vector.size == 0 ? nullptr : floats_at(access, vector.data, vector.size);
}
inline const std::byte* plane_at(const device::Access& access, const codec::MatrixRef& matrix,
                                 std::size_t plane) {
  return bytes_at(access, matrix.planes[plane], plane_bytes(matrix, plane));
}

// Numbers from the first of some rows to the end of the last.
constexpr std::size_t strided(std::size_t rows, std::size_t columns, std::size_t stride) {
  return rows == 0 ? 0 : (rows - 1) * stride + columns;
}

}  // namespace sluice::kernels::gpu
