// What stands between products, as launches: norms, rotary positions, caches, attention, sums of rows.
#pragma once

#include "kernels/gpu/norm-inl.h"
#include "kernels/gpu/place.h"
#include "kernels/ops/ops.h"

namespace sluice::kernels::gpu {

template <class Launcher>
void run(Launcher& launcher, const device::Access& access, const op::RmsNorm& op) {
  launcher.template launch<RmsNormKernel>(
      access, op.rows,
      {.x = floats_at(access, op.x, strided(op.rows, op.columns, op.x_stride)),
       .weight = vector_at(access, op.weight),
       .y = floats_at(access, op.y, strided(op.rows, op.columns, op.y_stride)),
       .columns = op.columns,
       .x_stride = op.x_stride,
       .y_stride = op.y_stride,
       .eps = op.eps});
}

}  // namespace sluice::kernels::gpu
