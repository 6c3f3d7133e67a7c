#include "kernels_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "codec/native/native_chunk.h"
#include "codec/native/tiles.h"
#include "device/space.h"
#include "kernels/kernel_table.h"
#include "kernels/products/codes/sliced_matmul.h"
#include "kernels/products/products.h"
#include "kernels/products/vector_products.h"
#include "kernels/products/words/matmul.h"

namespace sluice::bench {

namespace {

kernels::Products products(Isa isa, bool rounded) {
  return rounded ? kernels::rounded_products(isa) : kernels::Products::kExact;
}

constexpr kernels::ActivationForm kForms[] = {kernels::ActivationForm::kF32, kernels::ActivationForm::kInt8};

const char* suffix(kernels::ActivationForm form) {
  return form == kernels::ActivationForm::kInt8 ? " by int8" : "";
}

}  // namespace

void ProductBench::add_matmul(std::size_t tokens, std::size_t count, bool rounded) {
  for (std::size_t p = 0; p < suite_.pools(); ++p) {
    for (const Isa isa : suite_.isas(rounded)) {
      const Context ctx{suite_.pool(p), isa, products(isa, rounded)};
      if (ctx.rounds() != rounded) continue;
      check_matmul(ctx, tokens, &ProductBench::multiply);
      const std::size_t n = std::min(count, suite_.matrices());
      suite_.add({fmt::format("matmul m={} {}, {}T", tokens, isa_name(isa), ctx.pool->threads()),
                  [this, ctx, tokens, n](std::size_t round) {
                    for (std::size_t i = 0; i < n; ++i)
                      multiply(ctx, tokens, (round * n + i) % suite_.matrices());
                  }},
                 static_cast<double>(n * kMatrixBytes), 2.0 * static_cast<double>(n * kRows * kCols * tokens),
                 p, isa);
    }
  }
}

void ProductBench::add_vectors(std::size_t count, bool rounded) {
  constexpr std::size_t kAtOnce = 8;
  for (std::size_t p = 0; p < suite_.pools(); ++p) {
    for (const Isa isa : suite_.isas(rounded)) {
      const Context ctx{suite_.pool(p), isa, products(isa, rounded)};
      if (ctx.rounds() != rounded) continue;
      const auto multiply = [this](const Context& c, std::size_t first) {
        y_.resize(kAtOnce * kRows);
        packed_.resize(kCols);
        kernels::arrange_activations(c, suite_.x(), 1, kCols, kCols, packed_.data());
        std::vector<codec::MatrixRef> views;
        std::vector<kernels::VectorProduct> products;
        for (std::size_t i = 0; i < kAtOnce; ++i)
          views.push_back(codec::word_matrix(suite_.weights().data() + (first + i) * kMatrixBytes,
                                             DType::kBF16, kRows, kCols));
        for (std::size_t i = 0; i < kAtOnce; ++i)
          products.push_back({packed_.data(), &views[i], &y_[i * kRows]});
        kernels::multiply_vectors(c, products);
      };
      const std::size_t passes = std::min(count, suite_.matrices()) / kAtOnce;
      if (passes == 0) continue;
      multiply({ctx.pool, Isa::kScalar, ctx.products}, 0);
      const std::vector<float> expected(y_.data(), y_.data() + kAtOnce * kRows);
      multiply(ctx, 0);
      SLUICE_CHECK(std::memcmp(expected.data(), y_.data(), expected.size() * 4) == 0);
      suite_.add({fmt::format("vectors, {} at once {}, {}T", kAtOnce, isa_name(isa), ctx.pool->threads()),
                  [multiply, ctx, passes](std::size_t) {
                    for (std::size_t i = 0; i < passes; ++i) multiply(ctx, i * kAtOnce);
                  }},
                 static_cast<double>(passes * kAtOnce * kMatrixBytes),
                 2.0 * static_cast<double>(passes * kAtOnce * kRows * kCols), p, isa);
    }
  }
}

void ProductBench::add_packed(std::size_t tokens, std::size_t count, bool rounded) {
  pack();
  for (std::size_t p = 0; p < suite_.pools(); ++p) {
    for (const Isa isa : suite_.packed_isas()) {
      const Context ctx{suite_.pool(p), isa, products(isa, rounded)};
      if ((kernels::rounded_products(isa) != kernels::Products::kExact) != rounded) continue;
      check_matmul(ctx, tokens, &ProductBench::multiply_packed);
      const std::size_t n = std::min(count, suite_.matrices());
      suite_.add({fmt::format("packed m={} {}, {}T", tokens, isa_name(isa), ctx.pool->threads()),
                  [this, ctx, tokens, n](std::size_t round) {
                    for (std::size_t i = 0; i < n; ++i)
                      multiply_packed(ctx, tokens, (round * n + i) % suite_.matrices());
                  }},
                 static_cast<double>(n * (planes_each_ + chunk_.bytes)),
                 2.0 * static_cast<double>(n * kRows * kCols * tokens), p, isa);
    }
  }
}

void ProductBench::add_sliced(codec::SliceBits bits, std::size_t tokens, std::size_t count) {
  const Slices& slices = slice(bits);
  for (std::size_t p = 0; p < suite_.pools(); ++p) {
    for (const Isa isa : suite_.isas()) {
      for (const codec::SliceView which : {codec::SliceView::kLow, codec::SliceView::kHigh}) {
        for (const kernels::ActivationForm form : kForms) {
          const Context ctx{suite_.pool(p), isa, kernels::Products::kExact, form};
          check_sliced(ctx, slices, which, tokens);
          const std::size_t n = std::min(count, suite_.matrices());
          const bool low = which == codec::SliceView::kLow;
          suite_.add(
              {fmt::format("sliced {} {}{} m={} {}, {}T", codec::slice_bits_text(bits), low ? "MSB" : "both",
                           suffix(form), tokens, isa_name(isa), ctx.pool->threads()),
               [this, &slices, ctx, which, tokens, n](std::size_t round) {
                 for (std::size_t i = 0; i < n; ++i)
                   multiply_sliced(ctx, slices, which, tokens, (round * n + i) % suite_.matrices());
               }},
              static_cast<double>(n * (slices.shape.msb_bytes() + (low ? 0 : slices.shape.lsb_bytes()))),
              2.0 * static_cast<double>(n * kRows * kCols * tokens), p, isa);
        }
      }
    }
  }
}

void ProductBench::add_int8(std::size_t tokens, std::size_t count) {
  code_int8();
  for (std::size_t p = 0; p < suite_.pools(); ++p) {
    for (const Isa isa : suite_.isas()) {
      for (const kernels::ActivationForm form : kForms) {
        const Context ctx{suite_.pool(p), isa, kernels::Products::kExact, form};
        const std::size_t n = std::min(count, suite_.matrices());
        multiply_int8({ctx.pool, Isa::kScalar, ctx.products, form}, 1, 0);
        const std::vector<float> expected(y_.data(), y_.data() + kRows);
        multiply_int8(ctx, tokens, suite_.matrices() - 1);
        // Bits, not values. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
        SLUICE_CHECK(std::memcmp(expected.data(), y_.data(), kRows * 4) == 0);
        suite_.add({fmt::format("dense int8{} m={} {}, {}T", suffix(form), tokens, isa_name(isa),
                                ctx.pool->threads()),
                    [this, ctx, tokens, n](std::size_t round) {
                      for (std::size_t i = 0; i < n; ++i)
                        multiply_int8(ctx, tokens, (round * n + i) % suite_.matrices());
                    }},
                   static_cast<double>(n * int8_shape().bytes()),
                   2.0 * static_cast<double>(n * kRows * kCols * tokens), p, isa);
      }
    }
  }
}

void ProductBench::multiply(const Context& ctx, std::size_t tokens, std::size_t matrix) {
  packed_.resize(kMostTokens * kCols);
  y_.resize(kMostTokens * kRows);
  kernels::arrange_activations(ctx, suite_.x(), tokens, kCols, kCols, packed_.data());
  const codec::MatrixRef w =
      codec::word_matrix(suite_.weights().data() + matrix * kMatrixBytes, DType::kBF16, kRows, kCols);
  kernels::matmul(ctx, packed_.data(), tokens, w, {}, y_.data(), kRows);
}

// All matrices have the exponents of the first one, each in memory of its own.
void ProductBench::pack() {
  if (planes_.size() != 0) return;
  const codec::TileShape shape{kRows, kCols};
  std::vector<std::byte> exponents(shape.places()), plane(shape.places());
  codec::split_tiles({suite_.weights().data(), kMatrixBytes}, shape, exponents, plane);
  const std::vector<std::byte> coded = codec::encode_native(exponents, shape);
  planes_each_ = plane.size();
  coded_each_ = round_up(coded.size(), 4096);
  planes_.resize(suite_.matrices() * planes_each_);
  coded_.resize(suite_.matrices() * coded_each_);
  for (std::size_t m = 0; m < suite_.matrices(); ++m) {
    std::memcpy(&planes_[m * planes_each_], plane.data(), plane.size());
    std::memcpy(&coded_[m * coded_each_], coded.data(), coded.size());
  }
  chunk_ = {0, coded.size(), 0, shape.places(), 0, true};
}

void ProductBench::multiply_packed(const Context& ctx, std::size_t tokens, std::size_t matrix) {
  packed_.resize(kMostTokens * kCols);
  y_.resize(kMostTokens * kRows);
  kernels::arrange_activations(ctx, suite_.x(), tokens, kCols, kCols, packed_.data());
  const device::HostSpace& space = device::host_space();
  const codec::MatrixRef w{&codec::kFormatPacked,
                           {kRows, kCols},
                           {space.address(planes_.data() + matrix * planes_each_),
                            space.address(coded_.data() + matrix * coded_each_)},
                           {&chunk_, 1}};
  kernels::matmul(ctx, packed_.data(), tokens, w, {}, y_.data(), kRows);
}

const ProductBench::Slices& ProductBench::slice(codec::SliceBits bits) {
  std::unique_ptr<Slices>& slices = slices_[bits.high];
  if (slices != nullptr) return *slices;
  slices = std::make_unique<Slices>();
  slices->shape = {{kRows, kCols}, bits};
  slices->lsb = round_up(slices->shape.msb_bytes(), 4096);
  slices->each = slices->lsb + round_up(slices->shape.lsb_bytes(), 4096);
  slices->bytes.resize(suite_.matrices() * slices->each);
  std::byte* const first = slices->bytes.data();
  codec::quantise_sliced({suite_.weights().data(), kMatrixBytes}, DType::kBF16, slices->shape,
                         {first, first + slices->shape.scales_offset(), first + slices->shape.zeros_offset(),
                          first + slices->lsb});
  for (std::size_t m = 1; m < suite_.matrices(); ++m)
    std::memcpy(first + m * slices->each, first, slices->each);
  return *slices;
}

void ProductBench::multiply_sliced(const Context& ctx, const Slices& slices, codec::SliceView which,
                                   std::size_t tokens, std::size_t matrix) {
  sliced_packed_.resize(kMostTokens * kernels::sliced_floats(kCols));
  y_.resize(kMostTokens * kRows);
  kernels::arrange_for_slices(ctx, suite_.x(), tokens, kCols, kCols, sliced_packed_.data());
  kernels::matmul(ctx, sliced_packed_.data(), tokens, codec::sliced_ref(slices.view(matrix), which), {},
                  y_.data(), kRows);
}

codec::Int8Shape ProductBench::int8_shape() { return {{kRows, kCols}}; }

void ProductBench::code_int8() {
  if (int8_.size() != 0) return;
  const codec::Int8Shape shape = int8_shape();
  const std::size_t each = round_up(shape.bytes(), 4096);
  int8_.resize(suite_.matrices() * each);
  codec::quantise_int8({suite_.weights().data(), kMatrixBytes}, DType::kBF16, shape, int8_.data(),
                       int8_.data() + shape.scales_offset());
  for (std::size_t m = 1; m < suite_.matrices(); ++m)
    std::memcpy(int8_.data() + m * each, int8_.data(), each);
}

void ProductBench::multiply_int8(const Context& ctx, std::size_t tokens, std::size_t matrix) {
  packed_.resize(kMostTokens * kCols);
  y_.resize(kMostTokens * kRows);
  kernels::arrange_activations(ctx, suite_.x(), tokens, kCols, kCols, packed_.data());
  const std::byte* const data = int8_.data() + matrix * round_up(int8_shape().bytes(), 4096);
  kernels::matmul(ctx, packed_.data(), tokens, codec::int8_ref({kRows, kCols}, data), {}, y_.data(), kRows);
}

void ProductBench::check_sliced(const Context& ctx, const Slices& slices, codec::SliceView which,
                                std::size_t tokens) {
  multiply_sliced(ctx, slices, which, tokens, suite_.matrices() - 1);
  for (const std::size_t t : {std::size_t{0}, tokens - 1}) {
    std::vector<float> expected(kRows);
    kernels::matmul({ctx.pool, Isa::kScalar, ctx.products, ctx.activations},
                    sliced_packed_.data() + t * kernels::sliced_floats(kCols), 1,
                    codec::sliced_ref(slices.view(0), which), {}, expected.data(), kRows);
    // Bits, not values. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
    SLUICE_CHECK(std::memcmp(expected.data(), &y_[t * kRows], kRows * 4) == 0, fmt::format("token {}", t));
  }
}

void ProductBench::check_matmul(const Context& ctx, std::size_t tokens,
                                void (ProductBench::*multiply)(const Context&, std::size_t, std::size_t)) {
  (this->*multiply)(ctx, tokens, suite_.matrices() - 1);
  const codec::MatrixRef w = codec::word_matrix(suite_.weights().data(), DType::kBF16, kRows, kCols);
  for (const std::size_t t : {std::size_t{0}, tokens - 1}) {
    std::vector<float> expected(kRows);
    kernels::matmul({ctx.pool, Isa::kScalar, ctx.products}, packed_.data() + t * kCols, 1, w, {},
                    expected.data(), kRows);
    // Bits, not values. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
    SLUICE_CHECK(std::memcmp(expected.data(), &y_[t * kRows], kRows * 4) == 0, fmt::format("token {}", t));
  }
}

}  // namespace sluice::bench
