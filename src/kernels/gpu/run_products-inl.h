// Products with stored matrices and MLPs, as launches.
#pragma once

#include "kernels/gpu/place.h"
#include "kernels/ops/ops.h"

namespace sluice::kernels::gpu {}  // namespace sluice::kernels::gpu
