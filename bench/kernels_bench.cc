// sluice_bench_kernels [--mib N] [--rounds N] [--isa NAME] [--threads N]
//   [--only limits | matmul | tiles | packed | sliced | attention] [--json FILE]
// Matrix products and attention beside the rates of this machine's memory and FMA units, measured in the same
// minutes.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/machine/cpu.h"
#include "base/machine/system_memory.h"
#include "kernels_attention.h"
#include "kernels_products.h"
#include "kernels_suite.h"
#include "measure.h"
#include "report.h"

namespace sluice {
namespace {

int run(int argc, char** argv) {
  bench::check_options(argc, argv, {"mib", "rounds", "threads", "isa", "only", "json"});
  const Bytes wanted = bench::whole_option(argc, argv, "mib", 1536) * kMiB;
  const Bytes memory = std::min(wanted, free_memory(read_memory_limits()) / 4);
  const std::size_t matrices = std::max<std::size_t>(2, memory / bench::kMatrixBytes);
  const std::size_t rounds = bench::whole_option(argc, argv, "rounds", 7);
  const unsigned threads = static_cast<unsigned>(
      std::min<std::uint64_t>(bench::whole_option(argc, argv, "threads", usable_cpus()), 1024));
  const std::string isa = bench::option(argc, argv, "isa", "all");
  const std::string only = bench::option(argc, argv, "only", "");
  const std::string parts[] = {"", "limits", "matmul", "tiles", "packed", "sliced", "attention"};
  if (std::ranges::find(parts, only) == std::end(parts))
    throw Error(ErrorKind::kUsage, "no such part")
        .in("--only")
        .expected("limits, matmul, tiles, packed, sliced or attention")
        .found(only);
  std::vector<Isa> isas = isa == "all" ? available_isas() : std::vector<Isa>{parse_isa(isa)};
  if (isa == "all" && isas.size() > 1) std::erase(isas, Isa::kScalar);
  const std::vector<Isa> packed_isas = isas;
  if (isa == "all")  // except for packed weights and rounded activations: kAvx512 kernels
    std::erase_if(isas, [](Isa set) {
      return set == Isa::kAvx512Vbmi2 || set == Isa::kAvx512Bf16 || set == Isa::kAmx;
    });

  fmt::print("{}; {} matrices {} x {} BF16, {}; {} rounds\n", cpu_info().model, matrices, bench::kRows,
             bench::kCols, format_bytes(matrices * bench::kMatrixBytes), rounds);
  bench::Suite suite(matrices, threads, isas, packed_isas);
  bench::ProductBench products(suite);
  bench::AttentionBench attention(suite);
  suite.add_limits();
  if (only.empty() || only == "matmul") {
    products.add_matmul(1, matrices);
    products.add_vectors(matrices);
    products.add_matmul(2, 64);
    products.add_matmul(8, 64);
    products.add_matmul(32, 24);
    products.add_matmul(128, 8);
    products.add_matmul(512, 2);
  }
  if (only.empty() || only == "tiles") {
    products.add_vectors(128, true);
    for (const std::size_t tokens : {1, 8, 16, 32, 128, 512})
      products.add_matmul(tokens, std::clamp<std::size_t>(512 / tokens, 8, 128), true);
    for (const std::size_t tokens : {1, 8, 16, 32, 128, 512})
      products.add_packed(tokens, std::clamp<std::size_t>(512 / tokens, 8, 128), true);
  }
  if (only.empty() || only == "packed") {
    if (only == "packed") {
      products.add_matmul(1, matrices);
      products.add_matmul(1, matrices, true);
      products.add_packed(1, matrices, true);
    }
    products.add_packed(1, matrices);
    products.add_packed(2, 64);
    products.add_packed(8, 64);
  }
  if (only.empty() || only == "sliced") {
    if (only == "sliced") products.add_matmul(1, matrices);
    products.add_sliced({8, 4}, 1, matrices);
    if (only == "sliced") {
      products.add_sliced({6, 3}, 1, matrices);
      products.add_sliced({4, 2}, 1, matrices);
    }
    for (const std::size_t tokens : {2, 8, 32, 128})
      products.add_sliced({8, 4}, tokens, std::clamp<std::size_t>(512 / tokens, 8, 64));
    products.add_int8(1, matrices);
    if (only == "sliced") {
      products.add_sliced({6, 3}, 128, 8);
      products.add_sliced({4, 2}, 128, 8);
      products.add_matmul(128, 8);
    }
    products.add_int8(128, 8);
  }
  if (only.empty() || only == "attention") {
    attention.add("MHA 16x128, 2k", {16, 16, 128, 128, 0.088f, 0}, 2048, false);
    attention.add("GQA 32/4x128, 2k", {32, 4, 128, 128, 0.088f, 0}, 2048, false);
    attention.add("MLA 16, 576/512, 2k", {16, 1, 576, 512, 0.072f, 0}, 2048, true);
  }
  bench::Report report("kernels", argc, argv);
  suite.run(rounds, report);
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
