// sluice_bench_kernels [--mib N] [--rounds N] [--isa NAME] [--threads N]
//   [--only limits | matmul | tiles | packed | sliced | attention] [--json FILE]
// Matrix products and attention beside what memory and the FMA units of this machine give in the same
// minutes.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>

#include "base/cpu.h"
#include "base/error.h"
#include "base/float16.h"
#include "base/system_memory.h"
#include "base/thread_pool.h"
#include "kernels/attention.h"
#include "kernels/kernel_table.h"
#include "kernels/matmul.h"
#include "kernels/packed_matmul.h"
#include "kernels/sliced_matmul.h"
#include "kernels/vector_products.h"
#include "measure.h"
#include "report.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sluice {
namespace {

using bench::Workload;
using kernels::Context;
using kernels::Weight;

constexpr std::size_t kRows = 1408,
                      kCols = 2048;  // gate and up of an expert of DeepSeek-V2-Lite and Qwen1.5-MoE
constexpr std::size_t kMatrixBytes = kRows * kCols * 2;

// Moves all of it once, from 8 places at a time, which lie `apart` bytes from each other. One word of each
// cache line is looked at, so that nothing but memory limits the speed.
std::uint64_t read_streams(std::span<const std::byte> bytes, std::size_t apart) {
  constexpr std::size_t kStreams = 8, kLine = 64;
  std::uint64_t sums[kStreams] = {};
  for (std::size_t first = 0; first + kStreams * apart <= bytes.size(); first += kStreams * apart) {
    const std::byte* p = bytes.data() + first;
    for (std::size_t i = 0; i + kLine <= apart; i += kLine) {
      for (std::size_t s = 0; s < kStreams; ++s) {
        std::uint64_t word;
        std::memcpy(&word, p + s * apart + i, sizeof(word));
        sums[s] ^= word;
      }
    }
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t s : sums) sum ^= s;
  return sum;
}

#if defined(__x86_64__)
constexpr std::size_t kFmaLoops = 4'000'000;

[[gnu::target("avx512f")]] float fma_avx512(std::size_t loops) {
  __m512 acc[12];
  for (auto& a : acc) a = _mm512_set1_ps(1.0f);
  const __m512 x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(0.001f);
  for (std::size_t i = 0; i < loops; ++i) {
#pragma GCC unroll 12
    for (auto& a : acc) a = _mm512_fmadd_ps(a, x, y);
  }
  float out[16], sum = 0;
  for (const auto& a : acc) {
    _mm512_storeu_ps(out, a);
    sum += out[0];
  }
  return sum;
}

// Four products of full tiles a loop, out of tile registers.
[[gnu::target("amx-tile,amx-bf16")]] void tiles_amx(std::size_t loops) {
  struct alignas(64) {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } shapes;
  __asm__ volatile("ldtilecfg %0" ::"m"(shapes) : "memory");
  for (std::size_t i = 0; i < loops / 32; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
}

[[gnu::target("avx512f,avx512bf16")]] float pairs_avx512bf16(std::size_t loops) {
  __m512 acc[16];
  for (auto& a : acc) a = _mm512_set1_ps(1.0f);
  const __m512bh x = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3f7f)),  // 0.996
      y = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3a83));             // 0.001
  for (std::size_t i = 0; i < loops; ++i) {
#pragma GCC unroll 16
    for (auto& a : acc) a = _mm512_dpbf16_ps(a, x, y);
  }
  float out[16], sum = 0;
  for (const auto& a : acc) {
    _mm512_storeu_ps(out, a);
    sum += out[0];
  }
  return sum;
}

[[gnu::target("avx2,fma")]] float fma_avx2(std::size_t loops) {
  __m256 acc[12];
  for (auto& a : acc) a = _mm256_set1_ps(1.0f);
  const __m256 x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(0.001f);
  for (std::size_t i = 0; i < loops; ++i) {
#pragma GCC unroll 12
    for (auto& a : acc) a = _mm256_fmadd_ps(a, x, y);
  }
  float out[8], sum = 0;
  for (const auto& a : acc) {
    _mm256_storeu_ps(out, a);
    sum += out[0];
  }
  return sum;
}
#endif

// Floating-point operations of one call, and the sum that keeps the compiler from leaving it out.
double fma_peak_run(Isa isa, float* sum) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512 || isa == Isa::kAvx512Vbmi2) {
    *sum += fma_avx512(kFmaLoops);
    return 2.0 * 12 * 16 * kFmaLoops;
  }
  if (isa == Isa::kAvx512Bf16) {
    *sum += pairs_avx512bf16(kFmaLoops);
    return 4.0 * 16 * 16 * kFmaLoops;
  }
  if (isa == Isa::kAmx) {
    tiles_amx(kFmaLoops);
    return 4.0 * 16 * 16 * 32 * 2 * kFmaLoops / 32;
  }
  if (isa == Isa::kAvx2) {
    *sum += fma_avx2(kFmaLoops);
    return 2.0 * 12 * 8 * kFmaLoops;
  }
#endif
  (void)isa, (void)sum;
  return 0;
}

// A number of workloads with what they move and compute, for the table at the end.
struct Row {
  std::size_t index;  // of the workload
  double bytes = 0, flop = 0;
  std::vector<std::size_t> read_limits = {};  // workloads to compare with: the fastest of each round
  std::vector<std::size_t> fma_limits = {};
  std::size_t pool = 0;
  std::optional<Isa> isa = {};  // none: any
};

// Memory as the engine has it: on cache lines.
template <class T>
class Aligned {
 public:
  void resize(std::size_t count) {
    if (count <= size_) return;
    memory_.reset(static_cast<T*>(std::aligned_alloc(4096, round_up(count * sizeof(T), 4096))));
    SLUICE_CHECK(memory_ != nullptr);
    size_ = count;
  }
  T* data() const { return memory_.get(); }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) const { return memory_.get()[i]; }

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  std::unique_ptr<T[], Free> memory_;
  std::size_t size_ = 0;
};

class Bench {
 public:
  Bench(std::size_t matrices, unsigned most_threads, std::vector<Isa> isas, std::vector<Isa> packed_isas)
      : matrices_(matrices), isas_(std::move(isas)), packed_isas_(std::move(packed_isas)), random_(7) {
    weights_.resize(matrices * kMatrixBytes);
    for (unsigned threads = 1; threads <= most_threads; threads *= 2) {
      pools_.push_back(std::make_unique<ThreadPool>(threads));
    }
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < kRows * kCols; ++i) {
      const std::uint16_t word = float_to_bf16(normal(random_) * 0.02f);
      std::memcpy(&weights_[2 * i], &word, 2);
    }
    for (std::size_t m = 1; m < matrices; ++m)
      std::memcpy(&weights_[m * kMatrixBytes], &weights_[0], kMatrixBytes);
    x_.resize(512 * kCols);
    for (std::size_t i = 0; i < x_.size(); ++i) x_[i] = normal(random_);
  }

  void add_limits() {
    for (std::size_t p = 0; p < pools_.size(); ++p) {
      ThreadPool* pool = pools_[p].get();
      const std::size_t part = weights_.size() / pool->threads() / 32768 * 32768;
      for (const std::size_t apart : {part / 8, std::size_t{4096}}) {
        read_limit_[p].push_back(workloads_.size());
        add({fmt::format("read, 8 streams {} apart, {}T", format_bytes(apart), pool->threads()),
             [this, pool, part, apart](std::size_t) {
               pool->parallel_for(pool->threads(), [&](std::size_t i) {
                 sink_ = sink_ ^ read_streams({weights_.data() + i * part, part}, apart);
               });
             }},
            static_cast<double>(part * pool->threads()), 0, p);
      }
      for (const Isa isa : packed_isas_) {
        float sum = 0;
        const double flop = fma_peak_run(isa, &sum) * pool->threads();
        if (flop == 0) continue;
        fma_limit_[p][isa].push_back(workloads_.size());
        add({fmt::format("FMA peak {}, {}T", isa_name(isa), pool->threads()),
             [this, pool, isa](std::size_t) {
               pool->parallel_for(pool->threads(), [&](std::size_t) {
                 float sum = 0;
                 fma_peak_run(isa, &sum);
                 sink_ = sink_ + static_cast<std::uint64_t>(sum);
               });
             }},
            0, flop, p);
        rows_.back().isa = isa;
      }
    }
  }

  // `rounded`: by the instruction sets that have instructions for rounded activations.
  void add_matmul(std::size_t tokens, std::size_t count, bool rounded = false) {
    for (std::size_t p = 0; p < pools_.size(); ++p) {
      for (const Isa isa : rounded ? packed_isas_ : isas_) {
        const Context ctx{pools_[p].get(), isa, products(isa, rounded)};
        if (ctx.rounds() != rounded) continue;
        check_matmul(ctx, tokens, &Bench::multiply);
        const std::size_t n = std::min(count, matrices_);
        add({fmt::format("matmul m={} {}, {}T", tokens, isa_name(isa), ctx.pool->threads()),
             [this, ctx, tokens, n](std::size_t round) {
               for (std::size_t i = 0; i < n; ++i) multiply(ctx, tokens, (round * n + i) % matrices_);
             }},
            static_cast<double>(n * kMatrixBytes), 2.0 * static_cast<double>(n * kRows * kCols * tokens), p,
            isa);
      }
    }
  }

  // One token, as many products in one pass of the threads as a layer has.
  void add_vectors(std::size_t count, bool rounded = false) {
    constexpr std::size_t kAtOnce = 8;
    for (std::size_t p = 0; p < pools_.size(); ++p) {
      for (const Isa isa : rounded ? packed_isas_ : isas_) {
        const Context ctx{pools_[p].get(), isa, products(isa, rounded)};
        if (ctx.rounds() != rounded) continue;
        const auto multiply = [this](const Context& c, std::size_t first) {
          y_.resize(kAtOnce * kRows);
          packed_.resize(kCols);
          kernels::pack_activations(c, x_.data(), 1, kCols, kCols, packed_.data());
          std::vector<kernels::WeightView> views;
          std::vector<kernels::VectorProduct> products;
          for (std::size_t i = 0; i < kAtOnce; ++i)
            views.emplace_back(
                Weight{weights_.data() + (first + i) * kMatrixBytes, DType::kBF16, kRows, kCols});
          for (std::size_t i = 0; i < kAtOnce; ++i)
            products.push_back({packed_.data(), &views[i], &y_[i * kRows]});
          kernels::multiply_vectors(c, products);
        };
        const std::size_t passes = std::min(count, matrices_) / kAtOnce;
        if (passes == 0) continue;
        multiply({ctx.pool, Isa::kScalar, ctx.products}, 0);
        const std::vector<float> expected(y_.data(), y_.data() + kAtOnce * kRows);
        multiply(ctx, 0);
        SLUICE_CHECK(std::memcmp(expected.data(), y_.data(), expected.size() * 4) == 0);
        add({fmt::format("vectors, {} at once {}, {}T", kAtOnce, isa_name(isa), ctx.pool->threads()),
             [multiply, ctx, passes](std::size_t) {
               for (std::size_t i = 0; i < passes; ++i) multiply(ctx, i * kAtOnce);
             }},
            static_cast<double>(passes * kAtOnce * kMatrixBytes),
            2.0 * static_cast<double>(passes * kAtOnce * kRows * kCols), p, isa);
      }
    }
  }

  // The same matrices as codec `native` stores them.
  void add_packed(std::size_t tokens, std::size_t count, bool rounded = false) {
    pack();
    for (std::size_t p = 0; p < pools_.size(); ++p) {
      for (const Isa isa : packed_isas_) {
        const Context ctx{pools_[p].get(), isa, products(isa, rounded)};
        if ((kernels::rounded_products(isa) != kernels::Products::kExact) != rounded) continue;
        check_matmul(ctx, tokens, &Bench::multiply_packed);
        const std::size_t n = std::min(count, matrices_);
        add({fmt::format("packed m={} {}, {}T", tokens, isa_name(isa), ctx.pool->threads()),
             [this, ctx, tokens, n](std::size_t round) {
               for (std::size_t i = 0; i < n; ++i) multiply_packed(ctx, tokens, (round * n + i) % matrices_);
             }},
            static_cast<double>(n * (planes_each_ + chunk_.bytes.size())),
            2.0 * static_cast<double>(n * kRows * kCols * tokens), p, isa);
      }
    }
  }

  // The same matrices as family `sliced` stores them: their MSB slices, or both.
  void add_sliced(codec::SliceBits bits, std::size_t tokens, std::size_t count) {
    const Slices& slices = slice(bits);
    for (std::size_t p = 0; p < pools_.size(); ++p) {
      for (const Isa isa : isas_) {
        for (const codec::SliceView which : {codec::SliceView::kLow, codec::SliceView::kHigh}) {
          const Context ctx{pools_[p].get(), isa};
          check_sliced(ctx, slices, which, tokens);
          const std::size_t n = std::min(count, matrices_);
          const bool low = which == codec::SliceView::kLow;
          add({fmt::format("sliced {} {} m={} {}, {}T", codec::slice_bits_text(bits), low ? "MSB" : "both",
                           tokens, isa_name(isa), ctx.pool->threads()),
               [this, &slices, ctx, which, tokens, n](std::size_t round) {
                 for (std::size_t i = 0; i < n; ++i)
                   multiply_sliced(ctx, slices, which, tokens, (round * n + i) % matrices_);
               }},
              static_cast<double>(n * (slices.shape.msb_bytes() + (low ? 0 : slices.shape.lsb_bytes()))),
              2.0 * static_cast<double>(n * kRows * kCols * tokens), p, isa);
        }
      }
    }
  }

  void add_attention(const std::string& name, const kernels::AttentionShape& shape, std::size_t context,
                     bool latent) {
    // Layers one after the other, as in decode, so that the cache of one is not still in L2.
    const std::size_t key_row = shape.kv_heads * shape.key_dim;
    const std::size_t value_row = latent ? key_row : shape.kv_heads * shape.value_dim;
    const std::size_t layer_bytes = context * (latent ? key_row : key_row + value_row) * 2;
    const std::size_t layers =
        std::max<std::size_t>(1, std::min<std::size_t>(64, weights_.size() / layer_bytes));
    for (std::size_t p = 0; p < pools_.size(); ++p) {
      for (const Isa isa : isas_) {
        const Context ctx{pools_[p].get(), isa};
        const auto attend = [this, shape, context, latent, key_row, value_row, layer_bytes](
                                const Context& c, std::size_t layer) {
          const std::byte* data = weights_.data() + layer * layer_bytes;
          const kernels::CacheView keys{data, DType::kBF16, key_row, shape.key_dim};
          const std::byte* value_data = latent ? data : data + context * key_row * 2;
          const kernels::CacheView values{value_data, DType::kBF16, value_row, shape.value_dim};
          scratch_.resize(c.pool->threads() * kernels::attention_scratch_floats(shape, context));
          y_.resize(shape.heads * shape.value_dim);
          kernels::attention(c, shape, x_.data(), 1, context - 1, keys, values, y_.data(), scratch_.data());
        };
        attend({ctx.pool, Isa::kScalar}, 0);
        const std::vector<float> expected(y_.data(), y_.data() + shape.heads * shape.value_dim);
        attend(ctx, 0);
        SLUICE_CHECK(std::memcmp(expected.data(), y_.data(), expected.size() * 4) == 0, name);
        const double flop =
            2.0 * static_cast<double>(shape.heads * context * (shape.key_dim + shape.value_dim));
        add({fmt::format("attention {} {}, {}T", name, isa_name(isa), ctx.pool->threads()),
             [attend, ctx, layers](std::size_t) {
               for (std::size_t layer = 0; layer < layers; ++layer) attend(ctx, layer);
             }},
            static_cast<double>(layers * layer_bytes), flop * static_cast<double>(layers), p, isa);
      }
    }
  }

  void run(std::size_t rounds, bench::Report& report) {
    bench::measure(workloads_, rounds);
    fmt::print("{:<38} {:>32} {:>8} {:>8} {:>9} {:>8}\n", "workload", "median (min … max)", "GB/s", "of read",
               "GFLOP/s", "of FMA");
    for (const Row& row : rows_) {
      const Workload& w = workloads_[row.index];
      const double seconds = bench::quantile(w.seconds, 0.5);
      const auto rate = [&](double amount) {
        return amount == 0 ? std::string("-") : fmt::format("{:.1f}", amount / seconds * 1e-9);
      };
      // Ratio to the limit measured in the same round, then the median of the rounds.
      const auto shares = [&](double Row::*amount, const std::vector<std::size_t>& limits) {
        std::vector<double> ratios;
        if (limits.empty() || row.*amount == 0) return ratios;
        for (std::size_t i = 0; i < w.seconds.size(); ++i) {
          double limit = 0;
          for (const std::size_t l : limits)
            limit = std::max(limit, rows_[l].*amount / workloads_[l].seconds[i]);
          ratios.push_back(row.*amount / w.seconds[i] / limit);
        }
        return ratios;
      };
      const auto median = [](const std::vector<double>& ratios) {
        return ratios.empty() ? std::string("-") : fmt::format("{:.2f}", bench::quantile(ratios, 0.5));
      };
      const std::vector<double> of_read = shares(&Row::bytes, row.read_limits);
      const std::vector<double> of_fma = shares(&Row::flop, row.fma_limits);
      fmt::print("{:<38} {:>32} {:>8} {:>8} {:>9} {:>8}\n", w.name, bench::times(w), rate(row.bytes),
                 median(of_read), rate(row.flop), median(of_fma));
      report.add(report_row(row, of_read, of_fma));
    }
    fmt::print("(sum {})\n", sink_ & 1);
  }

 private:
  static kernels::Products products(Isa isa, bool rounded) {
    return rounded ? kernels::rounded_products(isa) : kernels::Products::kExact;
  }

  void add(Workload workload, double bytes, double flop, std::size_t pool, Isa isa) {
    add(std::move(workload), bytes, flop, pool);
    rows_.back().isa = isa;
    rows_.back().read_limits = read_limit_[pool];
    rows_.back().fma_limits = fma_limit_[pool][isa];
  }
  void add(Workload workload, double bytes, double flop, std::size_t pool) {
    rows_.push_back({.index = workloads_.size(), .bytes = bytes, .flop = flop, .pool = pool});
    workloads_.push_back(std::move(workload));
  }

  // Held against the limit that it comes closer to. On the page: all threads, the best instruction sets with
  // and without rounding.
  bench::Row report_row(const Row& row, const std::vector<double>& of_read,
                        const std::vector<double>& of_fma) const {
    const Workload& w = workloads_[row.index];
    bench::Row out{.name = w.name, .bytes = row.bytes, .flops = row.flop, .seconds = w.seconds};
    const bool compute =
        !of_fma.empty() && (of_read.empty() || bench::quantile(of_fma, 0.5) > bench::quantile(of_read, 0.5));
    out.shares = compute ? of_fma : of_read;
    if (!out.shares.empty())
      out.limit = compute ? workloads_[row.fma_limits[0]].name
                          : fmt::format("read, {}T", pools_[row.pool]->threads());
    out.detail = row.pool + 1 < pools_.size() ||
                 (row.isa && *row.isa != isas_.back() && *row.isa != packed_isas_.back());
    return out;
  }

  void multiply(const Context& ctx, std::size_t tokens, std::size_t matrix) {
    packed_.resize(512 * kCols);
    y_.resize(512 * kRows);
    kernels::pack_activations(ctx, x_.data(), tokens, kCols, kCols, packed_.data());
    const Weight w{weights_.data() + matrix * kMatrixBytes, DType::kBF16, kRows, kCols};
    kernels::matmul(ctx, packed_.data(), tokens, w, {}, y_.data(), kRows);
  }

  // All have the exponents of the first, each in memory of its own.
  void pack() {
    if (planes_.size() != 0) return;
    const codec::TileShape shape{kRows, kCols};
    std::vector<std::byte> exponents(shape.places()), plane(shape.places());
    codec::split_tiles({weights_.data(), kMatrixBytes}, shape, exponents, plane);
    const std::vector<std::byte> coded = codec::encode_native(exponents, shape);
    planes_each_ = plane.size();
    coded_each_ = round_up(coded.size(), 4096);
    planes_.resize(matrices_ * planes_each_);
    coded_.resize(matrices_ * coded_each_);
    for (std::size_t m = 0; m < matrices_; ++m) {
      std::memcpy(&planes_[m * planes_each_], plane.data(), plane.size());
      std::memcpy(&coded_[m * coded_each_], coded.data(), coded.size());
    }
    chunk_ = {{coded_.data(), coded.size()}, 0, shape.groups(), true};
  }

  void multiply_packed(const Context& ctx, std::size_t tokens, std::size_t matrix) {
    packed_.resize(512 * kCols);
    y_.resize(512 * kRows);
    kernels::pack_activations(ctx, x_.data(), tokens, kCols, kCols, packed_.data());
    kernels::PackedChunk chunk = chunk_;
    chunk.bytes = {coded_.data() + matrix * coded_each_, chunk_.bytes.size()};
    kernels::packed_matmul(ctx, packed_.data(), tokens,
                           {{kRows, kCols}, planes_.data() + matrix * planes_each_, {&chunk, 1}}, {},
                           y_.data(), kRows);
  }

  // Each matrix in memory of its own, all of the first one's codes.
  struct Slices {
    codec::SlicedShape shape;
    std::size_t each = 0, lsb = 0;  // bytes from one matrix to the next, and from it to its LSB slice
    Aligned<std::byte> bytes;
    codec::SlicedView view(std::size_t matrix) const {
      const std::byte* const first = bytes.data() + matrix * each;
      return codec::sliced_view(shape, {first, shape.msb_bytes()}, {first + lsb, shape.lsb_bytes()});
    }
  };

  const Slices& slice(codec::SliceBits bits) {
    std::unique_ptr<Slices>& slices = slices_[bits.high];
    if (slices != nullptr) return *slices;
    slices = std::make_unique<Slices>();
    slices->shape = {{kRows, kCols}, bits};
    slices->lsb = round_up(slices->shape.msb_bytes(), 4096);
    slices->each = slices->lsb + round_up(slices->shape.lsb_bytes(), 4096);
    slices->bytes.resize(matrices_ * slices->each);
    std::byte* const first = slices->bytes.data();
    codec::quantise_sliced({weights_.data(), kMatrixBytes}, DType::kBF16, slices->shape,
                           {first, first + slices->shape.scales_offset(),
                            first + slices->shape.zeros_offset(), first + slices->lsb});
    for (std::size_t m = 1; m < matrices_; ++m) std::memcpy(first + m * slices->each, first, slices->each);
    return *slices;
  }

  void multiply_sliced(const Context& ctx, const Slices& slices, codec::SliceView which, std::size_t tokens,
                       std::size_t matrix) {
    sliced_packed_.resize(512 * kernels::sliced_floats(kCols));
    y_.resize(512 * kRows);
    kernels::pack_for_slices(ctx, x_.data(), tokens, kCols, kCols, sliced_packed_.data());
    kernels::sliced_matmul(ctx, sliced_packed_.data(), tokens, slices.view(matrix), which, {}, y_.data(),
                           kRows);
  }

  // The bits of the scalar path, for the first and the last token.
  void check_sliced(const Context& ctx, const Slices& slices, codec::SliceView which, std::size_t tokens) {
    multiply_sliced(ctx, slices, which, tokens, matrices_ - 1);
    for (const std::size_t t : {std::size_t{0}, tokens - 1}) {
      std::vector<float> expected(kRows);
      kernels::sliced_matmul({ctx.pool, Isa::kScalar},
                             sliced_packed_.data() + t * kernels::sliced_floats(kCols), 1, slices.view(0),
                             which, {}, expected.data(), kRows);
      // Bits, not values. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
      SLUICE_CHECK(std::memcmp(expected.data(), &y_[t * kRows], kRows * 4) == 0, fmt::format("token {}", t));
    }
  }

  // The bits of the scalar path, for the first and the last token.
  void check_matmul(const Context& ctx, std::size_t tokens,
                    void (Bench::*multiply)(const Context&, std::size_t, std::size_t)) {
    (this->*multiply)(ctx, tokens, matrices_ - 1);
    const Weight w{weights_.data(), DType::kBF16, kRows, kCols};
    for (const std::size_t t : {std::size_t{0}, tokens - 1}) {
      std::vector<float> expected(kRows);
      kernels::matmul({ctx.pool, Isa::kScalar, ctx.products}, packed_.data() + t * kCols, 1, w, {},
                      expected.data(), kRows);
      // Bits, not values. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
      SLUICE_CHECK(std::memcmp(expected.data(), &y_[t * kRows], kRows * 4) == 0, fmt::format("token {}", t));
    }
  }

  std::size_t matrices_;
  std::vector<Isa> isas_, packed_isas_;
  std::mt19937_64 random_;
  Aligned<std::byte> weights_, planes_, coded_;
  std::size_t planes_each_ = 0, coded_each_ = 0;
  kernels::PackedChunk chunk_;
  std::map<unsigned, std::unique_ptr<Slices>> slices_;  // by bits of a code
  Aligned<float> x_, packed_, sliced_packed_, y_, scratch_;
  std::vector<std::unique_ptr<ThreadPool>> pools_;
  std::vector<Workload> workloads_;
  std::vector<Row> rows_;
  std::map<std::size_t, std::vector<std::size_t>> read_limit_;                // by pool
  std::map<std::size_t, std::map<Isa, std::vector<std::size_t>>> fma_limit_;  // by pool and instruction set
  volatile std::uint64_t sink_ = 0;
};

int run(int argc, char** argv) {
  const Bytes wanted = std::stoull(bench::option(argc, argv, "mib", "1536")) * kMiB;
  const Bytes memory = std::min(wanted, free_memory(read_memory_limits()) / 4);
  const std::size_t matrices = std::max<std::size_t>(2, memory / kMatrixBytes);
  const std::size_t rounds = std::stoul(bench::option(argc, argv, "rounds", "7"));
  const unsigned threads =
      static_cast<unsigned>(std::stoul(bench::option(argc, argv, "threads", std::to_string(usable_cpus()))));
  const std::string isa = bench::option(argc, argv, "isa", "all");
  const std::string only = bench::option(argc, argv, "only", "");
  std::vector<Isa> isas = isa == "all" ? available_isas() : std::vector<Isa>{parse_isa(isa)};
  if (isa == "all" && isas.size() > 1) std::erase(isas, Isa::kScalar);
  const std::vector<Isa> packed_isas = isas;
  if (isa == "all")  // but for packed weights and rounded activations, the kernels of kAvx512
    std::erase_if(isas, [](Isa set) {
      return set == Isa::kAvx512Vbmi2 || set == Isa::kAvx512Bf16 || set == Isa::kAmx;
    });

  fmt::print("{}; {} matrices {} x {} BF16, {}; {} rounds\n", cpu_info().model, matrices, kRows, kCols,
             format_bytes(matrices * kMatrixBytes), rounds);
  Bench bench(matrices, threads, isas, packed_isas);
  bench.add_limits();
  if (only.empty() || only == "matmul") {
    bench.add_matmul(1, matrices);
    bench.add_vectors(matrices);
    bench.add_matmul(2, 64);
    bench.add_matmul(8, 64);
    bench.add_matmul(32, 24);
    bench.add_matmul(128, 8);
    bench.add_matmul(512, 2);
  }
  if (only.empty() || only == "tiles") {
    bench.add_vectors(128, true);
    for (const std::size_t tokens : {1, 8, 16, 32, 128, 512})
      bench.add_matmul(tokens, std::clamp<std::size_t>(512 / tokens, 8, 128), true);
    for (const std::size_t tokens : {1, 8, 16, 32, 128, 512})
      bench.add_packed(tokens, std::clamp<std::size_t>(512 / tokens, 8, 128), true);
  }
  if (only.empty() || only == "packed") {
    if (only == "packed") {
      bench.add_matmul(1, matrices);
      bench.add_matmul(1, matrices, true);
      bench.add_packed(1, matrices, true);
    }
    bench.add_packed(1, matrices);
    bench.add_packed(2, 64);
    bench.add_packed(8, 64);
  }
  if (only.empty() || only == "sliced") {
    if (only == "sliced") bench.add_matmul(1, matrices);
    bench.add_sliced({8, 4}, 1, matrices);
    if (only == "sliced") {
      bench.add_sliced({6, 3}, 1, matrices);
      bench.add_sliced({4, 2}, 1, matrices);
    }
    for (const std::size_t tokens : {2, 8, 32, 128})
      bench.add_sliced({8, 4}, tokens, std::clamp<std::size_t>(512 / tokens, 8, 64));
  }
  if (only.empty() || only == "attention") {
    bench.add_attention("MHA 16x128, 2k", {16, 16, 128, 128, 0.088f, 0}, 2048, false);
    bench.add_attention("GQA 32/4x128, 2k", {32, 4, 128, 128, 0.088f, 0}, 2048, false);
    bench.add_attention("MLA 16, 576/512, 2k", {16, 1, 576, 512, 0.072f, 0}, 2048, true);
  }
  bench::Report report("kernels", argc, argv);
  bench.run(rounds, report);
  report.write();
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  try {
    return sluice::run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "sluice_bench_kernels: {}\n", e.what());
    return 1;
  }
}
