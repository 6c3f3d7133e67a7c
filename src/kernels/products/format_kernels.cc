#include "kernels/products/format_kernels.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/error.h"
#include "device/space.h"
#include "kernels/kernel_table.h"
#include "kernels/products/blocks/block_products_impl.h"
#include "kernels/products/blocks/coded_blocks_impl.h"
#include "kernels/products/codes/int8_matmul_impl.h"
#include "kernels/products/codes/integer_impl.h"
#include "kernels/products/packed/packed_impl.h"
#include "kernels/products/words/matmul_impl.h"

namespace sluice::kernels {
namespace {

// The kernels of each operation by Isa: those of the set itself, of the widest set below it that has some, or
// the scalar ones; null where rows are decoded instead.
template <class Kernels>
using BySet = std::array<const Kernels*, kIsas>;

#if defined(__x86_64__)
// scalar, AVX2, the sets with AVX-512, NEON
constexpr BySet<MatmulKernels> kWords = {&kMatmulScalar, &kMatmulAvx2,   &kMatmulAvx512, &kMatmulAvx512,
                                         &kMatmulAvx512, &kMatmulAvx512, &kMatmulScalar};
constexpr BySet<SlicedKernels> kSlices = {&kSlicedScalar, &kSlicedAvx2,   &kSlicedAvx512, &kSlicedAvx512,
                                          &kSlicedAvx512, &kSlicedAvx512, &kSlicedScalar};
constexpr BySet<Int8Kernels> kInt8 = {&kInt8Scalar, &kInt8Avx2,   &kInt8Avx512, &kInt8Avx512,
                                      &kInt8Avx512, &kInt8Avx512, &kInt8Scalar};
constexpr BySet<PackedKernels> kPlanes = {&kPackedNone,        &kPackedNone,        &kPackedAvx512,
                                          &kPackedAvx512Vbmi2, &kPackedAvx512Vbmi2, &kPackedAvx512Vbmi2,
                                          &kPackedNone};
constexpr BySet<BlockKernels> kBlocks = {nullptr,        &kBlocksAvx2,   &kBlocksAvx512, &kBlocksAvx512,
                                         &kBlocksAvx512, &kBlocksAvx512, nullptr};
constexpr BySet<CodedBlockKernels> kCodedBlocks = {&kCodedBlocksScalar, &kCodedBlocksAvx2, &kCodedBlocksAvx2,
                                                   &kCodedBlocksAvx2,   &kCodedBlocksAvx2, &kCodedBlocksAvx2,
                                                   &kCodedBlocksScalar};

// VNNI is not on the ladder of instruction sets: CPUs with AVX-512 may have it or not.
BySet<IntegerKernels> codes_by_set() {
  const CpuInfo cpu = cpu_info();
  const auto has = [&](std::string_view feature) { return std::ranges::count(cpu.features, feature) != 0; };
  const IntegerKernels* const avx512 = has("avx512vnni") ? &kIntegerAvx512Vnni : &kIntegerAvx512;
  const IntegerKernels* const amx = has("avx512vnni") && has("amx_int8") ? &kIntegerAmxInt8 : avx512;
  return {&kIntegerScalar, &kIntegerAvx2, avx512, avx512, avx512, amx, &kIntegerScalar};
}
#else
#if defined(__aarch64__)
constexpr const MatmulKernels* kOwnWords = &kMatmulNeon;
constexpr const SlicedKernels* kOwnSlices = &kSlicedNeon;
constexpr const Int8Kernels* kOwnInt8 = &kInt8Neon;
constexpr const IntegerKernels* kOwnCodes = &kIntegerNeon;
#else
constexpr const MatmulKernels* kOwnWords = &kMatmulScalar;
constexpr const SlicedKernels* kOwnSlices = &kSlicedScalar;
constexpr const Int8Kernels* kOwnInt8 = &kInt8Scalar;
constexpr const IntegerKernels* kOwnCodes = &kIntegerScalar;
#endif
template <class Kernels>
constexpr BySet<Kernels> last_is(const Kernels* scalar, const Kernels* neon) {
  BySet<Kernels> sets;
  sets.fill(scalar);
  sets.back() = neon;
  return sets;
}
constexpr BySet<MatmulKernels> kWords = last_is(&kMatmulScalar, kOwnWords);
constexpr BySet<SlicedKernels> kSlices = last_is(&kSlicedScalar, kOwnSlices);
constexpr BySet<Int8Kernels> kInt8 = last_is(&kInt8Scalar, kOwnInt8);
constexpr BySet<PackedKernels> kPlanes = last_is(&kPackedNone, &kPackedNone);
constexpr BySet<BlockKernels> kBlocks = {};
constexpr BySet<CodedBlockKernels> kCodedBlocks = last_is(&kCodedBlocksScalar, &kCodedBlocksScalar);
BySet<IntegerKernels> codes_by_set() { return last_is(&kIntegerScalar, kOwnCodes); }
#endif
static_assert(static_cast<std::size_t>(Isa::kNeon) + 1 == kIsas);

// Calls kernels(isa) for each instruction set.
template <class Kernels>
FormatRow row(const codec::MatrixFormat& format, const ProductDriver& driver, const Kernels& kernels) {
  FormatRow row{&format, &driver, {}};
  for (std::size_t isa = 0; isa < kIsas; ++isa) row.sets[isa] = kernels(isa);
  return row;
}

FormatRow words(const codec::MatrixFormat& format, const ProductDriver& driver,
                WordKernels MatmulKernels::*type) {
  return row(format, driver, [type](std::size_t isa) {
    const WordKernels& own = kWords[isa]->*type;
    return FormatKernels{.rows = own.rows, .transposed = own.transposed};
  });
}

FormatRow slices(std::size_t bits) {
  const BySet<IntegerKernels> codes = codes_by_set();
  return row(codec::slices_format(codec::kStoredSliceBits[bits]), kRowProducts, [&](std::size_t isa) {
    return FormatKernels{.rows = kSlices[isa]->of_bits[bits], .coded_rows = codes[isa]->slices.of_bits[bits]};
  });
}

FormatRow int8() {
  const BySet<IntegerKernels> codes = codes_by_set();
  return row(codec::kFormatInt8, kWideProducts, [&](std::size_t isa) {
    return FormatKernels{.rows = kInt8[isa]->rows, .coded_rows = codes[isa]->dense};
  });
}

FormatRow blocks(const codec::MatrixFormat& format, RowsKernel BlockKernels::*own) {
  FormatRow row = decoded_format(format);
  for (std::size_t isa = 0; isa < kIsas; ++isa) {
    if (kBlocks[isa] != nullptr) row.sets[isa].blocks = kBlocks[isa]->*own;
    row.sets[isa].coded_rows = kCodedBlocks[isa]->of.*own;
  }
  return row;
}

FormatRow packed() {
  return row(codec::kFormatPacked, kPackedProducts, [](std::size_t isa) {
    return FormatKernels{.rows = kWords[isa]->bf16.rows, .few = kPlanes[isa]->few};
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
      packed(),
      slices(0),
      slices(1),
      slices(2),
      int8(),
      blocks(codec::kFormatQ40, &BlockKernels::q4_0),
      blocks(codec::kFormatQ41, &BlockKernels::q4_1),
      blocks(codec::kFormatQ50, &BlockKernels::q5_0),
      blocks(codec::kFormatQ51, &BlockKernels::q5_1),
      blocks(codec::kFormatQ80, &BlockKernels::q8_0),
      blocks(codec::kFormatQ2K, &BlockKernels::q2_k),
      blocks(codec::kFormatQ3K, &BlockKernels::q3_k),
      blocks(codec::kFormatQ4K, &BlockKernels::q4_k),
      blocks(codec::kFormatQ5K, &BlockKernels::q5_k),
      blocks(codec::kFormatQ6K, &BlockKernels::q6_k),
      blocks(codec::kFormatIq4Nl, &BlockKernels::iq4_nl),
      blocks(codec::kFormatIq4Xs, &BlockKernels::iq4_xs),
      blocks(codec::kFormatMxfp4, &BlockKernels::mxfp4),
      blocks(codec::kFormatMxfp4Pair, &BlockKernels::mxfp4_pair),
  };
  return kRows;
}

FormatRow decoded_format(const codec::MatrixFormat& format) {
  return row(format, kDecodedProducts,
             [](std::size_t isa) { return FormatKernels{.rows = kWords[isa]->f32.rows}; });
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

ArrangeKernel arrange_kernel(Isa isa) { return kWords[static_cast<std::size_t>(isa)]->arrange; }

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
