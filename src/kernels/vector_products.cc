#include "kernels/vector_products.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "base/error.h"
#include "kernels/packed_groups.h"
#include "kernels/split.h"
#include "kernels/vector_products_impl.h"

namespace sluice::kernels {
namespace {

// Ranges of kVectorRows rows.
std::size_t ranges_of(const VectorProduct& product) {
  return (product.weight->rows() + kVectorRows - 1) / kVectorRows;
}

bool multiply_rows(const Context& ctx, const VectorProduct& product, std::size_t begin, std::size_t end) {
  if (product.weight->is_sliced()) {
    sliced_rows(ctx, product, begin, end);
    return true;
  }
  if (product.weight->is_int8()) {
    int8_rows(ctx, product, begin, end);
    return true;
  }
  if (ctx.rounds()) return tile_rows(ctx, product, begin, end);
  if (product.weight->is_packed()) return packed_rows(ctx, product, begin, end);
  word_rows(ctx, product, begin, end);
  return true;
}

}  // namespace

void multiply_vectors(const Context& ctx, std::span<const VectorProduct> products) {
  // Weights that are not multiplied by rounded activations need those widened first: matmul() does.
  const bool alone =
      ctx.rounds() && std::ranges::any_of(products, [](const VectorProduct& product) {
        const WeightView& weight = *product.weight;
        return weight.is_int8() || (weight.words.data != nullptr && weight.words.dtype != DType::kBF16);
      });
  if (alone || products.size() == 1) {
    for (const VectorProduct& product : products)
      matmul(ctx, product.packed, 1, *product.weight, product.bias, product.y, product.weight->rows());
    return;
  }
  std::size_t ranges = 0, cost = 0;
  for (const VectorProduct& product : products) {
    SLUICE_CHECK(product.bias.empty() || product.bias.size() == product.weight->rows(),
                 std::to_string(product.bias.size()));
    ranges += ranges_of(product);
    cost += product.weight->rows() * product.weight->columns();
  }
  std::atomic<bool> damaged = false;
  split(ctx, ranges, 1, cost, [&](std::size_t begin, std::size_t end) {
    std::size_t first = 0;  // range of the product at hand
    for (const VectorProduct& product : products) {
      const std::size_t last = first + ranges_of(product);
      if (begin < last && end > first) {
        const std::size_t row = (std::max(begin, first) - first) * kVectorRows;
        const std::size_t row_end =
            std::min((std::min(end, last) - first) * kVectorRows, product.weight->rows());
        if (!multiply_rows(ctx, product, row, row_end)) damaged = true;
      }
      first = last;
    }
  });
  if (damaged) throw_damaged();
}

}  // namespace sluice::kernels
