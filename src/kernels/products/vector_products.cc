#include "kernels/products/vector_products.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/elementwise_impl.h"
#include "kernels/kernel_table.h"
#include "kernels/products/codes/activation_codes.h"
#include "kernels/products/packed/packed_groups.h"
#include "kernels/products/scratch.h"
#include "kernels/products/vector_products_impl.h"
#include "kernels/products/words/matmul.h"
#include "kernels/split.h"

namespace sluice::kernels {
namespace {

// Ranges of kVectorRows rows.
std::size_t ranges_of(const VectorProduct& product) {
  return (product.weight->rows() + kVectorRows - 1) / kVectorRows;
}

VectorProduct gate_of(const VectorProduct& product) { return {product.packed, product.gate, product.gated}; }

// Like matmul(). Weights that are not multiplied by rounded activations need them widened first.
bool goes_alone(const Context& ctx, const WeightView& weight) {
  return ctx.rounds() && ((weight.is_int8() && ctx.activations != ActivationForm::kInt8) ||
                          (weight.words.data != nullptr && weight.words.dtype != DType::kBF16));
}

void multiply_alone(const Context& ctx, const VectorProduct& product) {
  const std::size_t rows = product.weight->rows();
  if (product.gate != nullptr) multiply_alone(ctx, gate_of(product));
  matmul(ctx, product.packed, 1, *product.weight, product.bias, product.y, rows);
  if (product.gate != nullptr) silu_mul(ctx, product.gated, product.y, rows, product.y);
}

bool multiply_rows(const Context& ctx, const VectorProduct& product, std::size_t begin, std::size_t end) {
  if (product.gate != nullptr) {
    const bool sound = multiply_rows(ctx, gate_of(product), begin, end);
    VectorProduct other = product;
    other.gate = nullptr;
    if (!multiply_rows(ctx, other, begin, end) || !sound) return false;
    const auto silu = kernel_table(ctx.isa).elementwise->silu_mul;
    silu(product.gated + begin, product.y + begin, end - begin, product.y + begin);
    return true;
  }
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

// The same products; those with dense matrices in codes use activations in codes.
class CodedVectors {
 public:
  std::span<const VectorProduct> of(const Context& ctx, std::span<const VectorProduct> products) {
    products_.assign(products.begin(), products.end());
    std::size_t floats = 0;
    for (std::size_t i = 0; i < products.size(); ++i)
      floats += same_before(products, i) == i ? floats_of(products[i]) : 0;
    auto* end = reinterpret_cast<float*>(scratch_room(ctx, Room::kCodes, floats * sizeof(float)));
    for (std::size_t i = 0; i < products.size(); ++i) {
      if (floats_of(products[i]) == 0) continue;
      if (const std::size_t before = same_before(products, i); before != i) {
        products_[i].packed = products_[before].packed;
        continue;
      }
      code_packed(ctx, products[i].packed, 1, products[i].weight->columns(), end);
      products_[i].packed = end;
      end += floats_of(products[i]);
    }
    return products_;
  }

 private:
  static std::size_t floats_of(const VectorProduct& product) {
    return product.weight->is_int8() ? activation_code_floats(product.weight->columns()) : 0;
  }
  // The first product of the same activations in the same form of codes.
  static std::size_t same_before(std::span<const VectorProduct> products, std::size_t i) {
    for (std::size_t first = 0; first < i; ++first)
      if (products[first].packed == products[i].packed &&
          floats_of(products[first]) == floats_of(products[i]))
        return first;
    return i;
  }
  std::vector<VectorProduct> products_;  // few: kept, so that decoding allocates nothing
};

}  // namespace

void multiply_vectors(const Context& ctx, std::span<const VectorProduct> products) {
  for (const VectorProduct& product : products)
    SLUICE_CHECK(product.gate == nullptr || (product.gate->rows() == product.weight->rows() &&
                                             product.gate->columns() == product.weight->columns() &&
                                             product.gate->is_sliced() == product.weight->is_sliced() &&
                                             product.gate->is_int8() == product.weight->is_int8()),
                 "a gate of another kind");
  const bool alone = std::ranges::any_of(products, [&ctx](const VectorProduct& product) {
    return goes_alone(ctx, *product.weight) || (product.gate != nullptr && goes_alone(ctx, *product.gate));
  });
  if (alone || (products.size() == 1 && products[0].gate == nullptr)) {
    for (const VectorProduct& product : products) multiply_alone(ctx, product);
    return;
  }
  thread_local CodedVectors coded;
  if (ctx.activations == ActivationForm::kInt8) products = coded.of(ctx, products);
  std::size_t ranges = 0, cost = 0;
  for (const VectorProduct& product : products) {
    SLUICE_CHECK(product.bias.empty() || product.bias.size() == product.weight->rows(),
                 std::to_string(product.bias.size()));
    ranges += ranges_of(product);
    cost += product.weight->rows() * product.weight->columns() * (product.gate != nullptr ? 2 : 1);
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
