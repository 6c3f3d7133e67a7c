// Instruction sets of the CPU at hand, and the one in force.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice {

enum class Isa { kScalar, kAvx2, kAvx512, kNeon };  // kAvx2: AVX2+FMA+F16C; kAvx512: F/BW/DQ/VL

std::string_view isa_name(Isa isa);  // "scalar" "avx2" "avx512" "neon"
std::vector<Isa> available_isas();   // ascending, always starts with kScalar; OS support (XCR0) included
Isa best_isa();
// Value of --isa: "auto" or a name. Error(kUsage) for an unknown name and for one that this CPU lacks.
Isa parse_isa(std::string_view text);

struct CpuInfo {
  std::string model;                  // "Intel(R) Xeon(R) Processor"
  std::vector<std::string> features;  // of those the program cares about: "avx2", "avx512bf16", "amx_bf16" …
};
CpuInfo cpu_info();

}  // namespace sluice
