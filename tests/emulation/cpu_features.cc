// base/machine/cpu_features.h for programs in which AVX-512 and AMX are emulated. The CPU must have the
// instructions that the emulation is compiled with: without AVX2, only scalar code is available.
#include "base/machine/cpu_features.h"

namespace sluice {

std::vector<std::string> detect_cpu_features() {
  std::vector<std::string> names = {"avx512f",    "avx512dq",    "avx512bw",   "avx512vl",
                                    "avx512vbmi", "avx512vbmi2", "avx512vnni", "avx512bf16",
                                    "amx_tile",   "amx_bf16",    "amx_int8"};
  if (__builtin_cpu_supports("avx2")) names.emplace_back("avx2");
  if (__builtin_cpu_supports("fma")) names.emplace_back("fma");
  if (__builtin_cpu_supports("f16c")) names.emplace_back("f16c");
  if (__builtin_cpu_supports("bmi2")) names.emplace_back("bmi2");
  return names;
}

}  // namespace sluice
