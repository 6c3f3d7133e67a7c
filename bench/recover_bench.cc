// Measures the recovery kernel on a CUDA device and the device's own copy in alternation; checks the result.
#include <fmt/format.h>

#include <cstring>
#include <random>
#include <vector>

#include "codec/exponents/bf16_recover.h"
#include "codec/exponents/bf16_split.h"
#include "device/cuda/unified_buffer.h"
#include "measure.h"
#include "report.h"

int main(int argc, char** argv) try {
  using namespace sluice;
  bench::check_options(argc, argv, {"json"});
  bench::Report report("recover", argc, argv);
  if (!device::unified_memory_available()) {
    fmt::print("no CUDA device: nothing was measured\n");
    report.write();
    return 0;
  }
  constexpr std::size_t kCount = std::size_t{256} << 20;
  const device::UnifiedBuffer exponents(kCount), rest(kCount), words(2 * kCount), copy(2 * kCount);
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < kCount; i += 8) {
    const std::uint64_t e = random() & 0x0f0f0f0f0f0f0f0full, s = random();
    std::memcpy(exponents.data() + i, &e, 8);
    std::memcpy(rest.data() + i, &s, 8);
  }
  for (const device::UnifiedBuffer* buffer : {&exponents, &rest, &words, &copy}) buffer->to_device();
  std::vector<bench::Workload> workloads = {
      {"recovery kernel",
       [&](std::size_t) {
         codec::recover_bf16_on_device(exponents.data(), rest.data(), kCount, words.data());
       }},
      {"device copy", [&](std::size_t) { codec::copy_on_device(words.data(), 2 * kCount, copy.data()); }}};
  bench::measure(workloads, 15);
  std::vector<std::byte> expected(2 * kCount);
  codec::bf16_split_kernels(best_isa()).merge(exponents.data(), rest.data(), kCount, expected.data());
  const bool right = std::memcmp(expected.data(), words.data(), 2 * kCount) == 0;
  for (const bench::Workload& w : workloads) {
    report.add({.name = fmt::format("{}, CUDA", w.name),
                .bytes = 4.0 * kCount,
                .seconds = w.seconds,
                .limit = "device copy",
                .shares = bench::shares_of(1, w.seconds, 1, workloads[1].seconds)});
    fmt::print("{:<16} {:7.1f} GB/s  {}\n", w.name, 4.0 * kCount / bench::quantile(w.seconds, 0.5) / 1e9,
               bench::times(w));
  }
  report.write();
  fmt::print("{} bytes moved a run; share of the copy's rate {:.2f}; answer {}\n", 4 * kCount,
             bench::quantile(workloads[1].seconds, 0.5) / bench::quantile(workloads[0].seconds, 0.5),
             right ? "right" : "WRONG");
  return right ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "sluice_bench_recover: {}\n", error.what());
  return 1;
}
