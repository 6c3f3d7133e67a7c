// How products with each format are made on each instruction set: the second table with the key of
// codec/matrix_format.h. docs/adding-a-format.md adds a row.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "base/machine/cpu.h"
#include "codec/matrix_format.h"
#include "kernels/context.h"
#include "kernels/products/product_args.h"

namespace sluice::kernels {

struct PackedGroupArgs;  // packed/packed_impl.h
struct TransposedArgs;   // words/matmul_impl.h

// What an instruction set has for a format. Null: nothing.
struct FormatKernels {
  RowsKernel rows = nullptr;  // from activations in the format's InputForm, fp32 or rounded
  RowsKernel coded_rows =
      nullptr;                  // from activations in codes of 8 bits (activation_codes.h, coded_blocks.h)
  RowsKernel blocks = nullptr;  // from blocks of codes as they are (block_products_impl.h)
  bool (*few)(const PackedGroupArgs& args) = nullptr;  // from compressed planes, without making words
  void (*transposed)(const TransposedArgs& args, std::size_t token_begin, std::size_t token_end,
                     std::size_t col_begin, std::size_t col_end) = nullptr;
};

// One product. Non-owning.
struct Product {
  const float* x = nullptr;  // (tokens, floats of the format's InputForm)
  std::size_t tokens = 0;    // at least 1
  const codec::MatrixRef& w;
  std::span<const float> bias;  // empty: none
  float* y = nullptr;           // row t at y + t*y_stride
  std::size_t y_stride = 0;
};

// The part of products that instruction sets share: threads, blocks of tokens, scratch.
struct ProductDriver {
  // The whole product, on all threads.
  void (*multiply)(const Context& ctx, const FormatKernels& kernels, const Product& product);
  // Rows [begin, end) of a product of one token, on the calling thread; both as RowsKernel takes them. False
  // if compressed planes are damaged.
  bool (*multiply_rows)(const Context& ctx, const FormatKernels& kernels, const Product& product,
                        std::size_t begin, std::size_t end);
  // Rounded activations are widened before the kernel takes them, which multiply_rows() does not do.
  bool widens = false;
};
// Calls FormatKernels::rows or coded_rows: for formats with kernels that read the planes.
extern const ProductDriver kRowProducts;
// The same; of formats in InputForm::kWords whose kernels take no rounded activations.
extern const ProductDriver kWideProducts;
// Words of BF16, which the units that round activations multiply, too.
extern const ProductDriver kBf16Products;
// Compressed planes of BF16 words.
extern const ProductDriver kPackedProducts;
// Calls `blocks`, or with activations in codes `coded_rows`. Without it, makes fp32 words of a few rows at a
// time by MatrixFormat::row, and multiplies them with `rows`, the kernel of fp32 words. Both have the bits of
// the product with the matrix as fp32.
extern const ProductDriver kDecodedProducts;

inline constexpr std::size_t kIsas = static_cast<std::size_t>(Isa::kNeon) + 1;

struct FormatRow {
  const codec::MatrixFormat* format = nullptr;
  const ProductDriver* driver = nullptr;
  std::array<FormatKernels, kIsas> sets;  // by Isa; `rows` of every set is there
  const FormatKernels& of(Isa isa) const { return sets[static_cast<std::size_t>(isa)]; }
};

// A row of a format without kernels of its own.
FormatRow decoded_format(const codec::MatrixFormat& format);

// The formats of this program that have an InputForm.
std::span<const FormatRow> format_rows();

// Rows beyond those: of formats that a checkpoint brings. Immutable.
class FormatTable {
 public:
  explicit FormatTable(std::vector<FormatRow> rows) : rows_(std::move(rows)) {}
  std::span<const FormatRow> rows() const { return rows_; }

 private:
  std::vector<FormatRow> rows_;
};

// The kernels of a format. Our own bug if neither table has it: code that loads a matrix must ask
// has_kernels() first.
const FormatRow& format_row(const Context& ctx, const codec::MatrixFormat* format);
bool has_kernels(const Context& ctx, const codec::MatrixFormat* format);

// Arranges one token's activations for words (matmul.h).
using ArrangeKernel = void (*)(const float* x, std::size_t columns, float* arranged);
ArrangeKernel arrange_kernel(Isa isa);

// The arguments of a product whose activations are in the form that the kernel reads.
ProductArgs product_args(const Product& product, const float* x, std::size_t x_stride, std::size_t tokens,
                         float* y);

}  // namespace sluice::kernels
