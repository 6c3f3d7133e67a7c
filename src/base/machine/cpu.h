// Instruction sets of this CPU, and the set that the program uses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// Ascending within a family. kAvx2: AVX2, FMA, F16C. kAvx512: F, BW, DQ, VL. kAvx512Vbmi2 adds VBMI and
// VBMI2, which codecs and products with packed weights use; all other operations take their kAvx512 kernels.
// kAvx512Bf16 adds AVX512-BF16 to kAvx512Vbmi2, and kAmx adds AMX-BF16 to kAvx512Vbmi2; both serve products
// that may round activations (kernels/products/packed/tile_impl.h).
enum class Isa { kScalar, kAvx2, kAvx512, kAvx512Vbmi2, kAvx512Bf16, kAmx, kNeon };

std::string_view isa_name(Isa isa);  // "scalar" "avx2" "avx512" "avx512_vbmi2" "avx512_bf16" "amx" "neon"
std::vector<Isa> available_isas();   // ascending, always starts with kScalar; OS support (XCR0) included
Isa best_isa();
// For Setting::kIsa: "auto" or a name. Error(kUsage) for an unknown name and for one that this CPU lacks.
Isa parse_isa(std::string_view text);

struct CpuInfo {
  std::string model;                  // "Intel(R) Xeon(R) Processor"
  std::vector<std::string> features;  // only those that the program uses: "avx2", "avx512bf16", "amx_bf16" …
};
CpuInfo cpu_info();
bool cpu_is_intel();  // only for speeds that differ between makers, never for what a CPU can do

}  // namespace sluice
