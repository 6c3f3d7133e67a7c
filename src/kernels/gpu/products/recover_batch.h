// Packed products that are multiplied as words, as many at a time as have room for these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/gpu/gpu_kernels.h"
#include "kernels/gpu/products/recover-inl.h"

namespace sluice::kernels::gpu {

class RecoverBatch {
 public:
  // `room`: at a multiple of 256.
  explicit RecoverBatch(std::span<std::byte> room) : room_(room) {}

  // Whether words of these make the product faster: the kernels of words that read many tokens are for
  // aligned rows.
  static bool suits(const ProductItem& item) {
    return item.tokens >= kRecoverTokens && item.columns % 8 == 0 &&
           reinterpret_cast<std::uintptr_t>(item.x) % 16 == 0;
  }
  bool could_hold(const ProductItem& item) const { return bytes_of(item) <= room_.size(); }
  // Beside those that are there.
  bool holds(const ProductItem& item) const {
    return bytes_of(item) <= room_.size() - used_ && items_.count + matrices(item) <= kRecoverItems;
  }
  // Returns the product with words. REQUIRES: holds().
  ProductItem add(ProductItem item) {
    const std::uint32_t rows = item.rows * item.row_step;
    for (std::uint32_t i = 0; i < matrices(item); ++i) {
      ProductSide& side = item.sides[i];
      RecoverItem& made = items_.items[items_.count++];
      made = {.sign_mantissas = side.planes[0],
              .words = room_.data() + used_,
              .first_chunk = side.first_chunk,
              .rows = rows,
              .columns = item.columns,
              .first_warp = 0};
      used_ += recovered_bytes(rows, item.columns);
      side.planes[0] = made.words;
      side.planes[1] = nullptr;
    }
    if (item.row_step == 2) item.sides[1].planes[0] = item.sides[0].planes[0] + 2 * item.columns;
    item.type = DType::kBF16;
    item.aligned = true;
    return item;
  }
  // The matrices whose words the products read.
  RecoverItems& items() { return items_; }
  void clear() {
    items_.count = 0;
    used_ = 0;
  }

 private:
  // With rows of gate and up by turns both sides are one matrix.
  static std::uint32_t matrices(const ProductItem& item) {
    return is_paired(item.form) && item.row_step == 1 ? 2 : 1;
  }
  static Bytes bytes_of(const ProductItem& item) {
    return matrices(item) * recovered_bytes(std::size_t{item.rows} * item.row_step, item.columns);
  }

  std::span<std::byte> room_;
  Bytes used_ = 0;
  RecoverItems items_{};
};

}  // namespace sluice::kernels::gpu
