// sluice_bench_codec [--rounds N] [--rows N] [--columns N] [--seed N] [--only TEXT]
//   [--json FILE]
// Measures codec `native` beside zstd and memcpy in one run: sizes against the entropy, encoding, decoding of
// exponents into a buffer that stays in L2, merging to words there and into memory. One core.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <span>

#include "base/bytes.h"
#include "base/error.h"
#include "base/float16.h"
#include "base/machine/cpu.h"
#include "codec/exponents/entropy.h"
#include "codec/exponents/exponent_codec.h"
#include "codec/native/native_chunk.h"
#include "measure.h"
#include "report.h"

namespace sluice {
namespace {

using bench::Workload;

// Memory aligned as in the store.
template <class T>
struct OnPages {
  using value_type = T;
  T* allocate(std::size_t count) {
    void* p = std::aligned_alloc(kBlockBytes, round_up(count * sizeof(T), kBlockBytes));
    SLUICE_CHECK(p != nullptr);
    return static_cast<T*>(p);
  }
  void deallocate(T* p, std::size_t) { std::free(p); }
  bool operator==(const OnPages&) const = default;
};
using Plane = std::vector<std::byte, OnPages<std::byte>>;

constexpr std::size_t kMatrices = 2;                // few: a workload must fit between two interruptions
constexpr std::size_t kWordsInMemory = 192 * kMiB;  // larger than the last cache

// Weights like those of trained models: a standard deviation of 0.02 that differs between rows, few outliers.
Plane make_words(codec::TileShape shape, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> uniform;
  Plane words(2 * shape.rows * shape.columns);
  for (std::size_t i = 0; i < shape.rows; ++i) {
    const float sigma = 0.02f * std::exp(0.25f * normal(random));
    for (std::size_t j = 0; j < shape.columns; ++j) {
      const float outlier = uniform(random) < 0.002f ? 6.0f : 1.0f;
      const std::uint16_t word = float_to_bf16(sigma * outlier * normal(random));
      std::memcpy(&words[2 * (i * shape.columns + j)], &word, 2);
    }
  }
  return words;
}

// One matrix in all measured forms.
struct Matrix {
  Plane words, exponents, sign_mantissas, native;
  std::optional<codec::NativeChunk> chunk;
  codec::EncodedChunk zstd3, zstd0;
};

struct Row {
  std::size_t index;  // the workload's
  double exponents;   // bytes of exponents that a round makes or takes
};

class Bench {
 public:
  Bench(codec::TileShape shape, std::uint64_t seed, std::string only)
      : shape_(shape),
        only_(std::move(only)),
        zstd3_(codec::make_exponent_codec("zstd", 3)),
        zstd0_(codec::make_exponent_codec("zstd", 0)) {
    std::mt19937_64 random(seed);
    matrices_.resize(kMatrices);
    for (Matrix& m : matrices_) {
      m.words = make_words(shape, random);
      m.exponents.resize(shape.places());
      m.sign_mantissas.resize(shape.places());
      codec::split_tiles(m.words, shape, m.exponents, m.sign_mantissas);
      const std::vector<std::byte> chunk = codec::encode_native(m.exponents, shape);
      m.native.assign(chunk.begin(), chunk.end());
      SLUICE_CHECK(!m.native.empty());
      m.chunk.emplace(m.native, codec::GroupRange{shape.groups(), shape.blocks()});
      m.zstd3 = zstd3_->encode(m.exponents);
      m.zstd0 = zstd0_->encode(m.exponents);
    }
    scratch_.resize(codec::native_scratch_bytes(shape.blocks()));
    near_.resize(2 * shape.group_places());
    whole_.resize(shape.places());
    far_.resize(round_down(kWordsInMemory, matrices_[0].words.size()));
    std::fill(far_.begin(), far_.end(), std::byte{1});  // faults the pages in
  }

  // Sizes for the tensor, so (8 + bits) / 16 where the planes are whole lines.
  void print_sizes(bench::Report& report) const {
    codec::ExponentHistogram histogram;
    double native = 0, zstd3 = 0, zstd0 = 0, exponents = 0;
    for (const Matrix& m : matrices_) {
      histogram.add_exponents(m.exponents);
      native += static_cast<double>(m.native.size());
      zstd3 += static_cast<double>(m.zstd3.bytes.size());
      zstd0 += static_cast<double>(m.zstd0.bytes.size());
      exponents += static_cast<double>(m.exponents.size());
    }
    const auto line = [&](const char* name, double bits) {
      report.add(
          {.name = fmt::format("size: {}", name),
           .figures = {{"bits", bits}, {"% over entropy", 100 * (bits - histogram.entropy_bits()) / 16}}});
      fmt::print("{:<16} {:6.3f} bits an exponent, tensor {:.4f}, over the entropy {:+.2f} % of the tensor\n",
                 name, bits, (8 + bits) / 16, 100 * (bits - histogram.entropy_bits()) / 16);
    };
    line("entropy, order 0", histogram.entropy_bits());
    line("native", 8 * native / exponents);
    line("zstd 0", 8 * zstd0 / exponents);
    line("zstd 3", 8 * zstd3 / exponents);
  }

  void add_all() {
    const double all = static_cast<double>(kMatrices * shape_.places());
    for (const bool third : {true, false}) {
      // Decodes one chunk at a time into a buffer as large as its exponents, like the store.
      zstd_[third ? 0 : 1] =
          add(third ? "decode zstd 3" : "decode zstd 0", all, third ? 1 : 2, [this, third](std::size_t) {
            for (const Matrix& m : matrices_) {
              const codec::EncodedChunk& c = third ? m.zstd3 : m.zstd0;
              (third ? zstd3_ : zstd0_)->decode(c.kind, c.bytes, whole_);
            }
          });
    }
    add("memcpy of exponents, L2", all, kPasses, [this](std::size_t) {
      for (const Matrix& m : matrices_) {
        for (std::size_t at = 0; at < m.exponents.size(); at += shape_.group_places())
          std::memcpy(near(), &m.exponents[at], shape_.group_places());
      }
    });
    for (const Isa isa : available_isas()) {
      check(isa);
      const codec::NativeKernels& kernels = codec::native_kernels(isa);
      add(fmt::format("decode native {}, L2", isa_name(isa)), all, passes(isa),
          [this, &kernels](std::size_t) {
            bool good = true;
            for (const Matrix& m : matrices_) {
              for (std::uint64_t g = 0; g < shape_.groups(); ++g)
                good &= kernels.decode(m.chunk->group(g), scratch_.data(), near());
            }
            SLUICE_CHECK(good);
          });
    }
    for (const Place place : {Place::kNear, Place::kFar}) {
      const char* name = place == Place::kNear ? "L2" : "DRAM";
      add(fmt::format("memcpy of words, {}", name), all, kPasses, [this, place](std::size_t pass) {
        const std::size_t group_words = 16 * shape_.columns;
        for (std::size_t i = 0; i < matrices_.size(); ++i) {
          const Plane& words = matrices_[i].words;
          for (std::size_t at = 0; at < words.size(); at += group_words)
            std::memcpy(place == Place::kNear ? near() : far(pass, i) + at, &words[at],
                        std::min(group_words, words.size() - at));
        }
      });
      for (const Isa isa : available_isas()) {
        for (const bool coded : {true, false}) {
          add(fmt::format("merge {} {}, {}", coded ? "native" : "raw", isa_name(isa), name), all, passes(isa),
              [this, isa, coded, place](std::size_t pass) {
                for (std::size_t i = 0; i < matrices_.size(); ++i)
                  merge(isa, coded, i, place == Place::kNear ? nullptr : far(pass, i));
              });
        }
      }
    }
    const double one = static_cast<double>(shape_.places());
    for (const Isa isa : available_isas()) {
      add(fmt::format("encode native {}", isa_name(isa)), one, 1, [this, isa](std::size_t) {
        SLUICE_CHECK(!codec::encode_native(matrices_[0].exponents, shape_, isa).empty());
      });
      add(fmt::format("split to tiles {}", isa_name(isa)), one, 4, [this, isa](std::size_t) {
        codec::split_tiles(matrices_[0].words, shape_, whole_, std::span(far_).first(shape_.places()), isa);
      });
    }
  }

  void run(std::size_t rounds, bench::Report& report) {
    bench::measure(workloads_, rounds);
    fmt::print("{:<36} {:>34} {:>12} {:>10} {:>10}\n", "workload", "median (min … max)", "Gexponents/s",
               "x zstd 3", "x zstd 0");
    for (const Row& row : rows_) {
      const Workload& w = workloads_[row.index];
      // Ratio to zstd in the same round, then the median of the rounds.
      const auto times_zstd = [&](const Row& zstd) {
        std::vector<double> ratios;
        for (std::size_t i = 0; i < w.seconds.size(); ++i)
          ratios.push_back(row.exponents / w.seconds[i] / zstd.exponents * workloads_[zstd.index].seconds[i]);
        return bench::quantile(ratios, 0.5);
      };
      fmt::print("{:<36} {:>34} {:>12.2f} {:>10.1f} {:>10.1f}\n", w.name, bench::times(w),
                 row.exponents / bench::quantile(w.seconds, 0.5) * 1e-9, times_zstd(zstd_[0]),
                 times_zstd(zstd_[1]));
      report.add(report_row(row, times_zstd(zstd_[0]), times_zstd(zstd_[1])));
    }
  }

 private:
  enum class Place { kNear, kFar };

  static constexpr std::size_t kPasses = 8;
  static std::size_t passes(Isa isa) { return isa == Isa::kScalar ? 1 : kPasses; }

  std::byte* near() { return near_.data(); }
  // Target of matrix i of a pass: a place that has left every cache.
  std::byte* far(std::size_t pass, std::size_t i) {
    const std::size_t bytes = matrices_[0].words.size(), places = far_.size() / bytes;
    return far_.data() + (pass * kMatrices + i) % places * bytes;
  }

  // Merges to `to`, or each group to the same memory.
  void merge(Isa isa, bool coded, std::size_t i, std::byte* to) {
    const codec::NativeKernels& kernels = codec::native_kernels(isa);
    const Matrix& m = matrices_[i];
    bool good = true;
    for (std::uint64_t g = 0; g < shape_.groups(); ++g) {
      const std::uint64_t rows =
          std::min<std::uint64_t>(codec::kTileRows, shape_.rows - g * codec::kTileRows);
      const codec::Stores stores = to == nullptr ? codec::Stores::kCached : codec::Stores::kStreaming;
      std::byte* const words = to == nullptr ? near() : to + g * 16 * shape_.columns;
      const std::byte* const sm = &m.sign_mantissas[g * shape_.group_places()];
      if (coded) {
        good &= kernels.merge(m.chunk->group(g), scratch_.data(), sm, rows, shape_.columns, words, stores);
      } else {
        kernels.merge_raw(&m.exponents[g * shape_.group_places()], sm, shape_.blocks(), rows, shape_.columns,
                          words, stores);
      }
    }
    SLUICE_CHECK(good);
  }

  void check(Isa isa) {
    for (std::size_t i = 0; i < matrices_.size(); ++i) {
      for (const bool coded : {true, false}) {
        std::memset(far(0, i), 0, matrices_[i].words.size());
        merge(isa, coded, i, far(0, i));
        SLUICE_CHECK(std::memcmp(far(0, i), matrices_[i].words.data(), matrices_[i].words.size()) == 0,
                     std::string(isa_name(isa)));
      }
    }
    const Matrix& m = matrices_[0];
    if (shape_.rows % codec::kTileRows != 0 || shape_.columns % codec::kTileColumns != 0) return;
    for (std::uint64_t g = 0; g < shape_.groups(); ++g) {
      SLUICE_CHECK(codec::native_kernels(isa).decode(m.chunk->group(g), scratch_.data(), near()));
      SLUICE_CHECK(std::memcmp(near(), &m.exponents[g * shape_.group_places()], shape_.group_places()) == 0);
    }
  }

  // zstd is always included, because all other codecs are compared with it. Each workload repeats the
  // matrices until it has taken about as long as zstd: the first to run after another pays for cold caches
  // and clocks. Decoding is compared with a copy of as many bytes to the same place. The page shows the best
  // instruction set.
  bench::Row report_row(const Row& row, double zstd3, double zstd0) const {
    const Workload& w = workloads_[row.index];
    bench::Row out{.name = w.name, .bytes = row.exponents, .seconds = w.seconds};
    for (const auto& [kind, limit] :
         {std::pair("decode native", "memcpy of exponents, L2"), std::pair("L2", "memcpy of words, L2"),
          std::pair("DRAM", "memcpy of words, DRAM")}) {
      if (w.name.find(kind) == std::string::npos || !out.limit.empty() || w.name.starts_with("memcpy"))
        continue;
      for (const Row& other : rows_) {
        if (workloads_[other.index].name != limit) continue;
        out.limit = limit;
        out.shares =
            bench::shares_of(row.exponents, w.seconds, other.exponents, workloads_[other.index].seconds);
      }
    }
    out.figures = {{"x zstd 3", zstd3}, {"x zstd 0", zstd0}};
    for (const Isa isa : available_isas())
      out.detail |= isa != best_isa() && w.name.find(fmt::format(" {},", isa_name(isa))) != std::string::npos;
    return out;
  }

  Row add(std::string name, double exponents, std::size_t passes, std::function<void(std::size_t)> run) {
    if (name.find(only_) == std::string::npos && name.find("zstd") == std::string::npos) return {};
    rows_.push_back({workloads_.size(), exponents * static_cast<double>(passes)});
    workloads_.push_back({std::move(name), [run = std::move(run), passes](std::size_t round) {
                            for (std::size_t pass = 0; pass < passes; ++pass) run(round * passes + pass);
                          }});
    return rows_.back();
  }

  codec::TileShape shape_;
  std::string only_;
  std::unique_ptr<const codec::ExponentCodec> zstd3_, zstd0_;
  std::vector<Matrix> matrices_;
  Plane scratch_, near_, whole_, far_;
  std::vector<Workload> workloads_;
  std::vector<Row> rows_;
  Row zstd_[2] = {};
};

int run(int argc, char** argv) {
  bench::check_options(argc, argv, {"rounds", "rows", "columns", "seed", "only", "json"});
  const std::size_t rounds = bench::whole_option(argc, argv, "rounds", 25);
  const std::uint64_t rows = bench::whole_option(argc, argv, "rows", 1408);
  const std::uint64_t columns = bench::whole_option(argc, argv, "columns", 2048);
  const std::uint64_t seed = std::stoull(bench::option(argc, argv, "seed", "7"));
  fmt::print("{}; {} matrices {} x {}, seed {}; {} rounds, one core\n", cpu_info().model, kMatrices, rows,
             columns, seed, rounds);
  Bench bench({rows, columns}, seed, bench::option(argc, argv, "only", ""));
  bench::Report report("codec", argc, argv);
  bench.print_sizes(report);
  bench.add_all();
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
    fmt::print(stderr, "sluice_bench_codec: {}\n", e.what());
    return 1;
  }
}
