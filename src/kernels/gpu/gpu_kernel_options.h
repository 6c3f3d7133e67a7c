// What kernels of a GPU are made with.
#pragma once

#include "base/bytes.h"
#include "kernels/ops/device_math.h"

namespace sluice::kernels {

struct GpuKernelOptions {
  Bytes room = 0;  // for words of packed matrices that are multiplied at a time; 0: they stay packed
  DeviceMath math = DeviceMath::kSame;
};

}  // namespace sluice::kernels
