#include "base/machine/cpu_features.h"

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "base/machine/cpuid.h"
#endif

namespace sluice {

#if defined(__x86_64__)
namespace {

// The register states that the operating system saves (XCR0); 0 if it uses no XSAVE at all.
std::uint64_t saved_states() {
  constexpr std::uint32_t kOsXsave = 1u << 27;
  if ((cpuid(1, 0).ecx & kOsXsave) == 0) return 0;
  std::uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32 | low;
}

// XCR0 bits: 1 XMM, 2 YMM, 5 opmask, 6 and 7 ZMM, 17 and 18 AMX tiles (Intel SDM vol. 1, 13.1).
constexpr std::uint64_t kNoState = 0;
constexpr std::uint64_t kYmm = 0x6;
constexpr std::uint64_t kZmm = 0xe6;
constexpr std::uint64_t kTile = 0x60000;

struct FeatureBit {
  std::string_view name;
  std::uint32_t leaf, subleaf;
  std::uint32_t CpuidRegisters::*reg;
  unsigned bit;
  std::uint64_t state;  // XCR0 bits that must be set for the instructions to be usable
};

constexpr std::array kFeatureBits = {
    FeatureBit{"sse4_2", 1, 0, &CpuidRegisters::ecx, 20, kNoState},
    FeatureBit{"avx", 1, 0, &CpuidRegisters::ecx, 28, kYmm},
    FeatureBit{"fma", 1, 0, &CpuidRegisters::ecx, 12, kYmm},
    FeatureBit{"f16c", 1, 0, &CpuidRegisters::ecx, 29, kYmm},
    FeatureBit{"bmi2", 7, 0, &CpuidRegisters::ebx, 8, kNoState},
    FeatureBit{"avx2", 7, 0, &CpuidRegisters::ebx, 5, kYmm},
    FeatureBit{"avx_vnni", 7, 1, &CpuidRegisters::eax, 4, kYmm},
    FeatureBit{"avx512f", 7, 0, &CpuidRegisters::ebx, 16, kZmm},
    FeatureBit{"avx512dq", 7, 0, &CpuidRegisters::ebx, 17, kZmm},
    FeatureBit{"avx512bw", 7, 0, &CpuidRegisters::ebx, 30, kZmm},
    FeatureBit{"avx512vl", 7, 0, &CpuidRegisters::ebx, 31, kZmm},
    FeatureBit{"avx512vbmi", 7, 0, &CpuidRegisters::ecx, 1, kZmm},
    FeatureBit{"avx512vbmi2", 7, 0, &CpuidRegisters::ecx, 6, kZmm},
    FeatureBit{"avx512vnni", 7, 0, &CpuidRegisters::ecx, 11, kZmm},
    FeatureBit{"avx512bf16", 7, 1, &CpuidRegisters::eax, 5, kZmm},
    FeatureBit{"avx512fp16", 7, 0, &CpuidRegisters::edx, 23, kZmm},
    FeatureBit{"amx_tile", 7, 0, &CpuidRegisters::edx, 24, kTile},
    FeatureBit{"amx_bf16", 7, 0, &CpuidRegisters::edx, 22, kTile},
    FeatureBit{"amx_int8", 7, 0, &CpuidRegisters::edx, 25, kTile},
};

// Linux lets a process use tiles only after it has asked (Documentation/arch/x86/xstate.rst); then all its
// threads may.
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

std::vector<std::string> detect_cpu_features() {
  std::uint64_t states = saved_states();
  if ((states & kTile) == kTile && !may_use_tiles()) states &= ~kTile;
  std::vector<std::string> names;
  for (const FeatureBit& f : kFeatureBits) {
    const CpuidRegisters r = cpuid(f.leaf, f.subleaf);
    const bool usable = (r.*f.reg >> f.bit & 1u) != 0 && (states & f.state) == f.state;
    if (usable) names.emplace_back(f.name);
  }
  return names;
}

#else

std::vector<std::string> detect_cpu_features() {
#if defined(__aarch64__)
  return {"neon"};  // part of the base architecture
#else
  return {};
#endif
}

#endif

}  // namespace sluice
