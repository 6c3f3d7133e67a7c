// Operands in this process's memory, for run-inl.h.
#pragma once

#include <cstddef>

#include "codec/matrix_format.h"
#include "device/space.h"
#include "kernels/ops/floats.h"

namespace sluice::kernels {

struct HostPlace {
  // const_cast: the addresses of unit memory are those of memory that may be written.
  std::byte* bytes(device::Address at, Bytes) const {
    return const_cast<std::byte*>(device::host_space().pointer(at));
  }
  float* floats(Floats floats, std::size_t) const { return reinterpret_cast<float*>(bytes(floats.at, 0)); }
  const codec::MatrixRef& matrix(const codec::MatrixRef& matrix) const { return matrix; }
};

}  // namespace sluice::kernels
