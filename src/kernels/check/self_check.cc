#include "kernels/check/self_check.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/float16.h"
#include "codec/matrix_format.h"
#include "codec/native/native_chunk.h"
#include "codec/native/tiles.h"
#include "codec/slices/int8_matrix.h"
#include "device/space.h"
#include "kernels/attention/attention.h"
#include "kernels/check/check_data.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/products/codes/sliced_matmul.h"
#include "kernels/products/format_kernels.h"
#include "kernels/products/products.h"
#include "kernels/products/words/matmul.h"

namespace sluice::kernels {
namespace {

struct Result {
  std::string_view kernel;
  std::vector<float> numbers;
};

// Sums of two products near the smallest normal number, where CPUs may differ (tile_impl.h).
Result tiny_sums(const Context& ctx) {
  constexpr std::size_t kCols = 64;
  constexpr std::uint16_t kLeast = 0x0080, kSubnormal = 0x0040, kOne = 0x3f80;
  constexpr std::uint16_t kPower = 0x1a00, kNegative = 0x9981;  // 2^-75, -(2^-76 + 2^-83)
  struct Case {
    std::uint16_t weights[2], activations[2];  // columns 0 and 32
  };
  constexpr Case kCases[] = {{{kLeast, kNegative}, {kOne, kPower}}, {{kLeast, 0x9980}, {kOne, kPower}},
                             {{kLeast, kSubnormal}, {kOne, kOne}},  {{kLeast, kOne}, {kOne, kSubnormal}},
                             {{0x00c0, 0x8080}, {kOne, kOne}},      {{0x1f80, 0x9f8b}, {0x1fc1, 0x1fb0}}};
  std::vector<float> sums;
  for (const Case& c : kCases) {
    std::vector<std::uint16_t> words(kCols);
    std::vector<float> x(kCols), packed(kCols);
    for (std::size_t i = 0; i < 2; ++i) {
      words[32 * i] = c.weights[i];
      x[32 * i] = bf16_to_float(c.activations[i]);
    }
    arrange_activations(ctx, x.data(), 1, kCols, kCols, packed.data());
    matmul(ctx, packed.data(), 1,
           codec::word_matrix(std::as_bytes(std::span(words)).data(), DType::kBF16, 1, kCols), {},
           &sums.emplace_back(), 1);
  }
  return {"matmul", std::move(sums)};
}

// Adds products with the codes of a matrix, in all forms that a store may have.
void add_sliced(const Context& ctx, std::span<const float> x, std::size_t tokens, std::size_t rows,
                std::size_t cols, std::vector<Result>& all) {
  std::vector<float> packed(tokens * sliced_floats(cols));
  arrange_for_slices(ctx, x.data(), tokens, cols, cols, packed.data());
  const std::vector<std::byte> weights = weights_of(DType::kF32, rows * cols);
  for (const codec::SliceBits bits : codec::kStoredSliceBits) {
    const codec::SlicedShape shape{{rows, cols}, bits};
    std::vector<std::byte> msb(shape.msb_bytes()), lsb(shape.lsb_bytes());
    codec::quantise_sliced(
        weights, DType::kF32, shape,
        {msb.data(), msb.data() + shape.scales_offset(), msb.data() + shape.zeros_offset(), lsb.data()});
    for (const auto view : {codec::SliceView::kHigh, codec::SliceView::kLow, codec::SliceView::kCenter}) {
      for (const std::size_t some : {std::size_t{1}, tokens}) {
        std::vector<float> y(some * rows);
        matmul(ctx, packed.data(), some, codec::sliced_ref(codec::sliced_view(shape, msb, lsb), view), {},
               y.data(), rows);
        all.push_back(
            {ctx.activations == ActivationForm::kInt8 ? "sliced_matmul of activation codes" : "sliced_matmul",
             std::move(y)});
      }
    }
  }
}

void add_int8(const Context& ctx, std::span<const float> x, std::size_t tokens, std::size_t rows,
              std::size_t cols, std::vector<Result>& all) {
  std::vector<float> packed(tokens * arranged_floats(cols));
  arrange_activations(ctx, x.data(), tokens, cols, cols, packed.data());
  const codec::Int8Shape shape{{rows, cols}};
  std::vector<std::byte> matrix(shape.bytes());
  codec::quantise_int8(weights_of(DType::kF32, rows * cols), DType::kF32, shape, matrix.data(),
                       matrix.data() + shape.scales_offset());
  std::vector<float> y(tokens * rows);
  matmul(ctx, packed.data(), tokens, codec::int8_ref({rows, cols}, matrix.data()), {}, y.data(), rows);
  all.push_back({ctx.activations == ActivationForm::kInt8 ? "int8_matmul of activation codes" : "int8_matmul",
                 std::move(y)});
}

// Adds products with every format that has kernels for blocks of codes on some set.
void add_blocks(const Context& ctx, std::span<const float> x, std::size_t rows, std::vector<Result>& all) {
  for (const FormatRow& row : format_rows()) {
    if (row.driver != &kDecodedProducts) continue;
    const codec::MatrixShape shape{rows, row.format->block.columns};
    codec::MatrixRef w{row.format, shape};
    std::vector<std::byte> planes[codec::kMostPlanes];
    for (std::size_t p = 0; p < row.format->plane_count(); ++p) {
      planes[p] = blocks_of(*row.format, shape, p);
      w.planes[p] = device::host_space().address(planes[p].data());
    }
    const std::size_t tokens = x.size() / 256;  // 256: columns of the widest block
    std::vector<float> packed(tokens * activation_floats(w));
    arrange_for(ctx, w, x.data(), tokens, shape.columns, packed.data());
    for (const std::size_t some : {std::size_t{1}, tokens}) {
      std::vector<float> y(some * rows);
      matmul(ctx, packed.data(), some, w, {}, y.data(), rows);
      all.push_back({"matmul of blocks", std::move(y)});
    }
  }
}

// The results of every kernel on a small tile with ragged ends in all directions.
std::vector<Result> results(Isa isa, Products products) {
  const Context ctx{nullptr, isa, products};
  std::vector<Result> all;
  if (products == Products::kPairs) all.push_back(tiny_sums(ctx));
  constexpr std::size_t kTokens = 7, kRows = 13, kCols = 150;
  const std::vector<float> x = sample(kTokens * kCols, 2);
  const std::vector<float> bias = sample(kCols, 3);

  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    const std::vector<std::byte> bytes = weights_of(dtype, kRows * kCols);
    const codec::MatrixRef w = codec::word_matrix(bytes.data(), dtype, kRows, kCols);
    std::vector<float> packed(kTokens * arranged_floats(kCols));
    arrange_activations(ctx, x.data(), kTokens, kCols, kCols, packed.data());
    for (const std::size_t tokens : {std::size_t{1}, kTokens}) {
      std::vector<float> y(tokens * kRows);
      matmul(ctx, packed.data(), tokens, w, {bias.data(), kRows}, y.data(), kRows);
      all.push_back({"matmul", std::move(y)});
      std::vector<float> z(tokens * kCols);
      matmul_transposed(ctx, x.data(), tokens, kCols, w, z.data(), kCols);
      all.push_back({"matmul_transposed", std::move(z)});
    }
    if (dtype != DType::kBF16) continue;
    const codec::TileShape shape{kRows, kCols};
    std::vector<std::byte> exponents(shape.places()), sign_mantissas(shape.places());
    codec::split_tiles(bytes, shape, exponents, sign_mantissas);
    const std::vector<std::byte> coded = codec::encode_native(exponents, shape);
    const codec::PlaneChunk chunk{0, coded.size(), 0, shape.places(), 0, true};
    const device::HostSpace& space = device::host_space();
    const codec::MatrixRef planes{&codec::kFormatPacked,
                                  {kRows, kCols},
                                  {space.address(sign_mantissas.data()), space.address(coded.data())},
                                  {&chunk, 1}};
    for (const std::size_t tokens : {std::size_t{1}, kTokens}) {
      std::vector<float> y(tokens * kRows);
      matmul(ctx, packed.data(), tokens, planes, {bias.data(), kRows}, y.data(), kRows);
      all.push_back({"packed_matmul", std::move(y)});
    }
  }
  for (const ActivationForm form : {ActivationForm::kF32, ActivationForm::kInt8}) {
    const Context multiplies{nullptr, isa, products, form};
    add_sliced(multiplies, x, kTokens, kRows, kCols, all);
    add_int8(multiplies, x, kTokens, kRows, kCols, all);
    add_blocks(multiplies, x, kRows, all);
  }
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    constexpr std::size_t kQueries = 3, kPositions = 21;
    const AttentionShape shape{4, 2, 40, 24, 0.17f, 11};
    const std::vector<std::byte> cache = weights_of(dtype, kPositions * 2 * 64);
    const CacheView keys{cache.data(), dtype, 128, 64};
    const CacheView values{cache.data() + 40 * dtype_bytes(dtype), dtype, 128, 64};
    std::vector<float> scratch(attention_scratch_floats(shape, kPositions));
    std::vector<float> out(kQueries * shape.heads * shape.value_dim);
    attention(ctx, shape, x.data(), kQueries, kPositions - kQueries, keys, values, out.data(), scratch.data(),
              {}, bias.data());
    all.push_back({"attention", std::move(out)});
  }
  std::vector<float> y(x.size());
  rms_norm(ctx, x.data(), kTokens, kCols, kCols, bias, 1e-6f, y.data(), kCols);
  all.push_back({"rms_norm", y});
  silu_mul(ctx, x.data(), y.data(), x.size(), y.data());
  all.push_back({"silu_mul", y});
  clamped_mul(ctx, {0.7f, 1.702f}, x.data(), y.data(), x.size(), y.data());
  all.push_back({"clamped_mul", y});
  add_scaled(ctx, x.data(), 0.3f, x.size(), y.data());
  all.push_back({"add_scaled", y});
  softmax_rows(ctx, y.data(), kTokens, kCols);
  all.push_back({"softmax_rows", y});
  return all;
}

// The first kernel whose bits differ from the scalar path; empty if none does.
std::string_view first_difference(Isa isa) {
  for (const Products products : {Products::kExact, rounded_products(isa)}) {
    const std::vector<Result> expected = results(Isa::kScalar, products);
    const std::vector<Result> found = results(isa, products);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::vector<float>& a = expected[i].numbers;
      if (std::memcmp(a.data(), found[i].numbers.data(), a.size() * sizeof(float)) != 0)
        return expected[i].kernel;
    }
  }
  return {};
}

}  // namespace

Isa self_check(Isa wanted, std::string* warning) {
  const std::vector<Isa> available = available_isas();
  std::string reasons;
  for (auto isa = available.rbegin(); isa != available.rend(); ++isa) {
    if (*isa > wanted || *isa == Isa::kScalar) continue;
    const std::string_view kernel = first_difference(*isa);
    if (kernel.empty()) {
      if (!reasons.empty() && warning != nullptr)
        *warning = fmt::format("{}; using {}", reasons, isa_name(*isa));
      return *isa;
    }
    reasons += fmt::format("{}{} computes {} otherwise than the scalar path", reasons.empty() ? "" : ", ",
                           isa_name(*isa), kernel);
  }
  if (wanted != Isa::kScalar && warning != nullptr) {
    *warning = reasons.empty() ? fmt::format("this CPU lacks {}; using scalar", isa_name(wanted))
                               : fmt::format("{}; using scalar", reasons);
  }
  return Isa::kScalar;
}

}  // namespace sluice::kernels
