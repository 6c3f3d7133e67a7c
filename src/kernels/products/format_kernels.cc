#include "kernels/products/format_kernels.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "device/space.h"
#include "kernels/kernel_table.h"
#include "kernels/products/codes/int8_matmul_impl.h"
#include "kernels/products/codes/integer_impl.h"
#include "kernels/products/packed/packed_impl.h"
#include "kernels/products/words/matmul_impl.h"

namespace sluice::kernels {
namespace {

// Calls kernels(table) for each instruction set; sets that this program was not built for have the scalar
// kernels.
template <class Kernels>
FormatRow row(const codec::MatrixFormat& format, const ProductDriver& driver, const Kernels& kernels) {
  FormatRow row{&format, &driver, {}};
  for (std::size_t isa = 0; isa < kIsas; ++isa) row.sets[isa] = kernels(kernel_table(static_cast<Isa>(isa)));
  return row;
}

FormatRow words(const codec::MatrixFormat& format, const ProductDriver& driver,
                WordKernels MatmulKernels::*type) {
  return row(format, driver, [type](const KernelTable& table) {
    const WordKernels& own = table.matmul->*type;
    return FormatKernels{.rows = own.rows, .transposed = own.transposed};
  });
}

FormatRow slices(std::size_t bits) {
  return row(codec::slices_format(codec::kStoredSliceBits[bits]), kRowProducts,
             [bits](const KernelTable& table) {
               return FormatKernels{.rows = table.sliced->of_bits[bits],
                                    .coded_rows = table.integer->slices.of_bits[bits]};
             });
}

// With few tokens memory is the limit. Prefetching eight lines ahead in each row takes over where the
// prefetcher of Intel's CPUs stops when a row, often a page, begins: 7 to 10 % faster than without. AMD's
// (Zen 3, Zen 5) continues into the next page by itself: prefetching costs it 5 to 15 %.
std::size_t ahead_for_few() {
  static const std::size_t bytes = cpu_is_intel() ? 512 : 0;
  return bytes;
}

}  // namespace

std::span<const FormatRow> format_rows() {
  static const FormatRow kRows[] = {
      words(codec::kFormatF32, kWideProducts, &MatmulKernels::f32),
      words(codec::kFormatF16, kWideProducts, &MatmulKernels::f16),
      words(codec::kFormatBf16, kBf16Products, &MatmulKernels::bf16),
      row(codec::kFormatPacked, kPackedProducts,
          [](const KernelTable& table) {
            return FormatKernels{.rows = table.matmul->bf16.rows, .few = table.packed->few};
          }),
      slices(0),
      slices(1),
      slices(2),
      row(codec::kFormatInt8, kWideProducts,
          [](const KernelTable& table) {
            return FormatKernels{.rows = table.int8->rows, .coded_rows = table.integer->dense};
          }),
  };
  return kRows;
}

FormatRow decoded_format(const codec::MatrixFormat& format) {
  return row(format, kDecodedProducts,
             [](const KernelTable& table) { return FormatKernels{.rows = table.matmul->f32.rows}; });
}

namespace {

const FormatRow* find_row(const Context& ctx, const codec::MatrixFormat* format) {
  for (const FormatRow& row : format_rows())
    if (row.format == format) return &row;
  if (ctx.formats == nullptr) return nullptr;
  const auto more = ctx.formats->rows();
  const auto found = std::ranges::find(more, format, &FormatRow::format);
  return found == more.end() ? nullptr : &*found;
}

}  // namespace

const FormatRow& format_row(const Context& ctx, const codec::MatrixFormat* format) {
  const FormatRow* const row = find_row(ctx, format);
  SLUICE_CHECK(row != nullptr, format == nullptr ? "no matrix" : std::string(format->name));
  return *row;
}

bool has_kernels(const Context& ctx, const codec::MatrixFormat* format) {
  return find_row(ctx, format) != nullptr;
}

ProductArgs product_args(const Product& product, const float* x, std::size_t x_stride, std::size_t tokens,
                         float* y) {
  const codec::MatrixRef& w = product.w;
  ProductArgs args{};
  args.x = x;
  args.x_stride = x_stride;
  args.tokens = tokens;
  for (std::size_t plane = 0; plane < codec::kMostPlanes; ++plane)
    args.planes[plane] = device::host_space().pointer(w.planes[plane]);
  if (w.format->words) args.row_bytes = w.format->plane_bytes({1, w.shape.columns}, 0);
  args.rows = w.shape.rows;
  args.columns = w.shape.columns;
  args.view = w.view;
  args.bias = product.bias.empty() ? nullptr : product.bias.data();
  args.y = y;
  args.y_stride = product.y_stride;
  args.ahead_bytes = ahead_for_few();
  return args;
}

}  // namespace sluice::kernels
