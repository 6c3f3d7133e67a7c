#include "kernels/products/vector_products.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/machine/thread_pool.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/elementwise_impl.h"
#include "kernels/kernel_table.h"
#include "kernels/products/codes/activation_codes.h"
#include "kernels/products/format_kernels.h"
#include "kernels/products/packed/packed_groups.h"
#include "kernels/products/products.h"
#include "kernels/products/scratch.h"
#include "kernels/products/vector_products_impl.h"
#include "kernels/split.h"

namespace sluice::kernels {
namespace {

std::size_t rows_of(const VectorProduct& product) { return product.weight->shape.rows; }

// Ranges of kVectorRows rows.
std::size_t ranges_of(const VectorProduct& product) {
  return (rows_of(product) + kVectorRows - 1) / kVectorRows;
}

VectorProduct gate_of(const VectorProduct& product) {
  return {product.gate_x, product.gate, product.gated, product.gate_bias};
}

// Whether arranged activations become codes first.
bool takes_codes(const Context& ctx, const codec::MatrixRef& w) {
  return ctx.activations == ActivationForm::kInt8 && w.format->input == codec::InputForm::kWords &&
         format_row(ctx, w.format).of(ctx.isa).coded_rows != nullptr;
}

// Weights that are not multiplied by rounded activations need those widened first.
bool goes_alone(const Context& ctx, const codec::MatrixRef& w) {
  return ctx.rounds() && format_row(ctx, w.format).driver->widens && !takes_codes(ctx, w);
}

void multiply_alone(const Context& ctx, const VectorProduct& product) {
  const std::size_t rows = rows_of(product);
  if (product.gate != nullptr) multiply_alone(ctx, gate_of(product));
  matmul(ctx, product.x, 1, *product.weight, product.bias, product.y, rows);
  if (product.gate != nullptr) silu_mul(ctx, product.gated, product.y, rows, product.y);
}

bool multiply_one(const Context& ctx, const VectorProduct& product, std::size_t begin, std::size_t end) {
  const FormatRow& row = format_row(ctx, product.weight->format);
  return row.driver->multiply_rows(ctx, row.of(ctx.isa),
                                   {product.x, 1, *product.weight, product.bias, product.y, rows_of(product)},
                                   begin, end);
}

bool multiply_rows(const Context& ctx, const VectorProduct& product, std::size_t begin, std::size_t end) {
  if (product.gate == nullptr) return multiply_one(ctx, product, begin, end);
  const bool sound = multiply_one(ctx, gate_of(product), begin, end);
  if (!multiply_one(ctx, product, begin, end) || !sound) return false;
  const auto silu = kernel_table(ctx.isa).elementwise->silu_mul;
  silu(product.gated + begin, product.y + begin, end - begin, product.y + begin);
  return true;
}

// The same products; those with matrices that take codes use activations in codes.
class CodedVectors {
 public:
  std::span<const VectorProduct> of(const Context& ctx, std::span<const VectorProduct> products) {
    products_.assign(products.begin(), products.end());
    inputs_.clear();
    for (VectorProduct& product : products_) {
      add(ctx, product.weight, product.x);
      if (product.gate != nullptr) add(ctx, product.gate, product.gate_x);
    }
    std::size_t floats = 0;
    for (std::size_t i = 0; i < inputs_.size(); ++i) floats += same_before(i) == i ? inputs_[i].floats() : 0;
    auto* end = reinterpret_cast<float*>(scratch_room(ctx, Room::kCodes, floats * sizeof(float)));
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      Input& input = inputs_[i];
      const std::size_t before = same_before(i);
      if (before != i) {
        input.codes = inputs_[before].codes;
      } else {
        code_arranged(ctx, input.arranged, 1, input.columns, end);
        input.codes = end;
        end += input.floats();
      }
      *input.x = input.codes;
    }
    return products_;
  }

 private:
  struct Input {
    const float** x;  // the input of a product, or of its gate
    const float* arranged;
    std::size_t columns;
    const float* codes = nullptr;
    std::size_t floats() const { return activation_code_floats(columns); }
  };
  void add(const Context& ctx, const codec::MatrixRef* weight, const float*& x) {
    if (takes_codes(ctx, *weight)) inputs_.push_back({&x, x, weight->shape.columns});
  }
  // The first input of the same activations.
  std::size_t same_before(std::size_t i) const {
    for (std::size_t first = 0; first < i; ++first)
      if (inputs_[first].arranged == inputs_[i].arranged && inputs_[first].columns == inputs_[i].columns)
        return first;
    return i;
  }
  // Few: kept, so that decoding allocates nothing.
  std::vector<VectorProduct> products_;
  std::vector<Input> inputs_;
};

void check(const VectorProduct& product) {
  SLUICE_CHECK(product.gate == nullptr || product.gate->shape == product.weight->shape,
               "a gate of another shape");
  SLUICE_CHECK(product.bias.empty() || product.bias.size() == rows_of(product),
               std::to_string(product.bias.size()));
  SLUICE_CHECK(product.gate_bias.empty() || product.gate_bias.size() == rows_of(product),
               std::to_string(product.gate_bias.size()));
}

}  // namespace

void multiply_vectors(const Context& ctx, std::span<const VectorProduct> products) {
  for (const VectorProduct& product : products) check(product);
  const bool alone = std::ranges::any_of(products, [&ctx](const VectorProduct& product) {
    return goes_alone(ctx, *product.weight) || (product.gate != nullptr && goes_alone(ctx, *product.gate));
  });
  if (alone || (products.size() == 1 && products[0].gate == nullptr)) {
    for (const VectorProduct& product : products) multiply_alone(ctx, product);
    return;
  }
  // Lists as long as `products`, no numbers; of each thread's own, since several engines may compute.
  thread_local CodedVectors coded;
  if (ctx.activations == ActivationForm::kInt8) products = coded.of(ctx, products);
  std::size_t ranges = 0, cost = 0;
  for (const VectorProduct& product : products) {
    ranges += ranges_of(product);
    cost += product.weight->shape.elements() * (product.gate != nullptr ? 2 : 1);
  }
  std::atomic<bool> damaged = false;
  split(ctx, ranges, 1, cost, [&](std::size_t begin, std::size_t end) {
    std::size_t first = 0;  // range of the product at hand
    for (const VectorProduct& product : products) {
      const std::size_t last = first + ranges_of(product);
      if (begin < last && end > first) {
        const std::size_t row = (std::max(begin, first) - first) * kVectorRows;
        const std::size_t row_end = std::min((std::min(end, last) - first) * kVectorRows, rows_of(product));
        if (!multiply_rows(ctx, product, row, row_end)) damaged = true;
      }
      first = last;
    }
  });
  if (damaged) throw_damaged();
}

}  // namespace sluice::kernels
