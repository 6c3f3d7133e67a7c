// Which formats of matrices kernels of a GPU multiply with. What is in another one is computed on the host.
#pragma once

#include "codec/matrix_format.h"

namespace sluice::kernels {

bool gpu_multiplies(const codec::MatrixFormat& format);

}  // namespace sluice::kernels
