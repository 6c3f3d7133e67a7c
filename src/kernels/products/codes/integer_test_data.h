// Kernels of integer products, called directly: a CPU uses only some of those that it could.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/machine/cpu.h"
#include "kernels/kernel_table.h"
#include "kernels/products/codes/integer_impl.h"

namespace sluice::kernels {

struct NamedIntegerKernels {
  std::string name;
  const IntegerKernels* kernels;
  bool available;  // this CPU has their instructions
};

inline std::vector<NamedIntegerKernels> vector_integer_kernels() {
#if defined(__x86_64__)
  const CpuInfo cpu = cpu_info();
  const auto has = [&](const char* feature) { return std::ranges::count(cpu.features, feature) != 0; };
  const bool avx2 = std::ranges::count(available_isas(), Isa::kAvx2) != 0,
             avx512 = std::ranges::count(available_isas(), Isa::kAvx512) != 0,
             vnni = avx512 && has("avx512vnni");
  return {{"avx2", &kIntegerAvx2, avx2},
          {"avx512", &kIntegerAvx512, avx512},
          {"avx512vnni", &kIntegerAvx512Vnni, vnni},
          {"amxint8", &kIntegerAmxInt8, vnni && has("amx_tile") && has("amx_int8")}};
#elif defined(__aarch64__)
  return {{"neon", &kIntegerNeon, true}};
#else
  return {};
#endif
}

// Those that this CPU has, and scalar.
inline std::vector<NamedIntegerKernels> available_integer_kernels() {
  std::vector<NamedIntegerKernels> all = vector_integer_kernels();
  all.push_back({"scalar", &kIntegerScalar, true});
  std::erase_if(all, [](const NamedIntegerKernels& kernels) { return !kernels.available; });
  return all;
}

}  // namespace sluice::kernels
