// Shared by the benchmarks of kernels: matrices, activations, thread pools, and the table of workloads beside
// the machine's limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/machine/cpu.h"
#include "base/machine/thread_pool.h"
#include "measure.h"
#include "report.h"

namespace sluice::bench {

// Gate and up of an expert of DeepSeek-V2-Lite and Qwen1.5-MoE.
inline constexpr std::size_t kRows = 1408, kCols = 2048;
inline constexpr std::size_t kMatrixBytes = kRows * kCols * 2;
inline constexpr std::size_t kMostTokens = 512;

// Memory aligned to cache lines, as in the engine.
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

// Thread-compatible. Workloads refer to it, so it must not move or end before run().
class Suite {
 public:
  Suite(std::size_t matrices, unsigned most_threads, std::vector<Isa> isas, std::vector<Isa> packed_isas);
  Suite(const Suite&) = delete;
  Suite& operator=(const Suite&) = delete;

  std::size_t matrices() const { return matrices_; }
  // (matrices, kRows, kCols) BF16; all matrices are equal.
  const Aligned<std::byte>& weights() const { return weights_; }
  const float* x() const { return x_.data(); }         // (kMostTokens, kCols)
  std::size_t pools() const { return pools_.size(); }  // 1, 2, 4 … threads
  ThreadPool* pool(std::size_t index) const { return pools_[index].get(); }
  const std::vector<Isa>& isas() const { return isas_; }  // those with kernels of their own for words
  // Also those that have kernels only for packed weights or rounded activations.
  const std::vector<Isa>& packed_isas() const { return packed_isas_; }
  const std::vector<Isa>& isas(bool rounded) const { return rounded ? packed_isas_ : isas_; }

  void add_limits();  // call first: add() compares with them
  // `bytes` and `flop`: moved and computed per round.
  void add(Workload workload, double bytes, double flop, std::size_t pool, Isa isa);
  // Measures all workloads and prints the table.
  void run(std::size_t rounds, Report& report);

 private:
  // A workload with its bytes and operations, for the table at the end.
  struct Line {
    std::size_t index;  // the workload's
    double bytes = 0, flop = 0;
    std::vector<std::size_t> read_limits = {};  // workloads to compare with: the fastest of each round
    std::vector<std::size_t> fma_limits = {};
    std::size_t pool = 0;
    std::optional<Isa> isa = {};  // empty: any set
  };

  void add_unlimited(Workload workload, double bytes, double flop, std::size_t pool);
  Row row_of(const Line& line, const std::vector<double>& of_read, const std::vector<double>& of_fma) const;

  std::size_t matrices_;
  std::vector<Isa> isas_, packed_isas_;
  Aligned<std::byte> weights_;
  Aligned<float> x_;
  std::vector<std::unique_ptr<ThreadPool>> pools_;
  std::vector<Workload> workloads_;
  std::vector<Line> lines_;
  std::map<std::size_t, std::vector<std::size_t>> read_limit_;                // by pool
  std::map<std::size_t, std::map<Isa, std::vector<std::size_t>>> fma_limit_;  // by pool and instruction set
  volatile std::uint64_t sink_ = 0;
};

}  // namespace sluice::bench
