// Matrices in blocks of codes whose end is guarded, and products with them, for the tests of this folder.
#pragma once

#include <cstddef>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "codec/matrix_format.h"
#include "device/space.h"
#include "kernels/products/blocks/block_data.h"
#include "kernels/products/products.h"
#include "kernels/test_data.h"

namespace sluice::kernels {

// Nothing behind its planes can be read.
class GuardedBlocks {
 public:
  GuardedBlocks(const Blocks& blocks, codec::MatrixShape shape, BlockScales scales, std::mt19937_64& random) {
    ref_.format = &blocks.format;
    ref_.shape = shape;
    for (std::size_t p = 0; p < blocks.format.plane_count(); ++p) {
      std::vector<std::byte> bytes(blocks.format.plane_bytes(shape, p));
      fill_blocks(blocks, p, scales, random, bytes);
      add(bytes);
    }
    blocks.format.check(ref_);
  }
  // `planes`: of whole blocks.
  GuardedBlocks(const codec::MatrixFormat& format, codec::MatrixShape shape,
                std::span<const std::vector<std::byte>> planes) {
    ref_.format = &format;
    ref_.shape = shape;
    for (const std::vector<std::byte>& plane : planes) add(plane);
    format.check(ref_);
  }
  const codec::MatrixRef& ref() const { return ref_; }
  std::vector<float> words() const {
    std::vector<float> all(ref_.shape.elements());
    for (std::size_t r = 0; r < ref_.shape.rows; ++r)
      codec::row_to_float(ref_, r, &all[r * ref_.shape.columns]);
    return all;
  }

 private:
  void add(std::span<const std::byte> plane) {
    planes_.push_back(std::make_unique<GuardedBytes>(plane));
    ref_.planes[planes_.size() - 1] = device::host_space().address(planes_.back()->data());
  }

  codec::MatrixRef ref_;
  std::vector<std::unique_ptr<GuardedBytes>> planes_;
};

inline std::vector<float> product_of(const Context& ctx, const codec::MatrixRef& w,
                                     const std::vector<float>& x, std::size_t tokens,
                                     std::span<const float> bias) {
  std::vector<float> arranged(tokens * activation_floats(w)), y(tokens * w.shape.rows, -1.0f);
  arrange_for(ctx, w, x.data(), tokens, w.shape.columns, arranged.data());
  GuardedBytes guarded(bytes_of(arranged));
  matmul(ctx, guarded.floats(), tokens, w, bias, y.data(), w.shape.rows);
  return y;
}

}  // namespace sluice::kernels
