// Words of one packed matrix as a launch, for tests and measurements of it alone.
#pragma once

#include "kernels/gpu/run_products-inl.h"

namespace sluice::kernels::gpu {

// `words`: (rows, columns) BF16, row-major, at an even address.
template <class Launcher>
void recover_words(Launcher& launcher, const device::Access& access, const codec::MatrixRef& matrix,
                   device::Address words) {
  ProductOperands operands(launcher, access);
  const ProductItem item = operands.planes(matrix);
  RecoverItems items{.count = 1, .fault = launcher.fault(access), .chunks = operands.chunks(), .items = {}};
  items.items[0] = {.sign_mantissas = item.sides[0].planes[0],
                    .words = bytes_at(access, words, 2 * matrix.shape.elements()),
                    .first_chunk = item.sides[0].first_chunk,
                    .rows = item.rows,
                    .columns = item.columns,
                    .first_warp = 0};
  ProductLaunches(launcher, access).run_recover(items, item.aligned);
}

}  // namespace sluice::kernels::gpu
