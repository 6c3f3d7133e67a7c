#include "base/cpu.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>

#include "base/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace sluice {
namespace {

#if defined(__x86_64__)

struct Registers {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// Zeros where the CPU has no such leaf.
Registers cpuid(std::uint32_t leaf, std::uint32_t subleaf) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

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
  std::uint32_t Registers::*reg;
  unsigned bit;
  std::uint64_t state;  // XCR0 bits that must be set for the instructions to be usable
};

constexpr std::array kFeatureBits = {
    FeatureBit{"sse4_2", 1, 0, &Registers::ecx, 20, kNoState},
    FeatureBit{"avx", 1, 0, &Registers::ecx, 28, kYmm},
    FeatureBit{"fma", 1, 0, &Registers::ecx, 12, kYmm},
    FeatureBit{"f16c", 1, 0, &Registers::ecx, 29, kYmm},
    FeatureBit{"bmi2", 7, 0, &Registers::ebx, 8, kNoState},
    FeatureBit{"avx2", 7, 0, &Registers::ebx, 5, kYmm},
    FeatureBit{"avx_vnni", 7, 1, &Registers::eax, 4, kYmm},
    FeatureBit{"avx512f", 7, 0, &Registers::ebx, 16, kZmm},
    FeatureBit{"avx512dq", 7, 0, &Registers::ebx, 17, kZmm},
    FeatureBit{"avx512bw", 7, 0, &Registers::ebx, 30, kZmm},
    FeatureBit{"avx512vl", 7, 0, &Registers::ebx, 31, kZmm},
    FeatureBit{"avx512vbmi", 7, 0, &Registers::ecx, 1, kZmm},
    FeatureBit{"avx512vbmi2", 7, 0, &Registers::ecx, 6, kZmm},
    FeatureBit{"avx512vnni", 7, 0, &Registers::ecx, 11, kZmm},
    FeatureBit{"avx512bf16", 7, 1, &Registers::eax, 5, kZmm},
    FeatureBit{"avx512fp16", 7, 0, &Registers::edx, 23, kZmm},
    FeatureBit{"amx_tile", 7, 0, &Registers::edx, 24, kTile},
    FeatureBit{"amx_bf16", 7, 0, &Registers::edx, 22, kTile},
    FeatureBit{"amx_int8", 7, 0, &Registers::edx, 25, kTile},
};

// Linux lets a process use tiles only if it asks (Documentation/arch/x86/xstate.rst); then all its threads
// may.
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

std::vector<std::string> detect_features() {
  std::uint64_t states = saved_states();
  if ((states & kTile) == kTile && !may_use_tiles()) states &= ~kTile;
  std::vector<std::string> names;
  for (const FeatureBit& f : kFeatureBits) {
    const Registers r = cpuid(f.leaf, f.subleaf);
    const bool usable = (r.*f.reg >> f.bit & 1u) != 0 && (states & f.state) == f.state;
    if (usable) names.emplace_back(f.name);
  }
  return names;
}

std::string detect_model() {
  if (cpuid(0x80000000u, 0).eax < 0x80000004u) return "unknown x86-64 CPU";
  std::array<char, 49> brand{};
  for (std::uint32_t i = 0; i < 3; ++i) {
    const Registers r = cpuid(0x80000002u + i, 0);
    std::memcpy(brand.data() + i * 16, &r, 16);
  }
  std::string model(brand.data());
  const std::size_t first = model.find_first_not_of(' ');
  const std::size_t last = model.find_last_not_of(' ');
  return first == std::string::npos ? "unknown x86-64 CPU" : model.substr(first, last - first + 1);
}

bool detect_intel() {
  const Registers r = cpuid(0, 0);
  return r.ebx == 0x756e6547 && r.edx == 0x49656e69 && r.ecx == 0x6c65746e;  // "Genu" "ineI" "ntel"
}

#else

bool detect_intel() { return false; }

std::vector<std::string> detect_features() {
#if defined(__aarch64__)
  return {"neon"};  // part of the base architecture
#else
  return {};
#endif
}

std::string detect_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos && (line.starts_with("model name") || line.starts_with("Model"))) {
      return line.substr(colon + 2);
    }
  }
  return "unknown CPU";
}

#endif

struct IsaRow {
  Isa isa;
  std::string_view name;
  std::vector<std::string_view>
      needs;  // what the compiler may emit in a file of this set (cmake/SluiceFolder.cmake)
};

const std::vector<IsaRow>& isa_rows() {
  static const std::vector<IsaRow> rows = {
      {Isa::kScalar, "scalar", {}},
      {Isa::kAvx2, "avx2", {"avx2", "fma", "f16c", "bmi2"}},
      {Isa::kAvx512,
       "avx512",
       {"avx2", "fma", "f16c", "bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl"}},
      {Isa::kAvx512Vbmi2,
       "avx512_vbmi2",
       {"avx2", "fma", "f16c", "bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vbmi",
        "avx512vbmi2"}},
      {Isa::kAvx512Bf16,
       "avx512_bf16",
       {"avx2", "fma", "f16c", "bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vbmi",
        "avx512vbmi2", "avx512bf16"}},
      {Isa::kAmx,
       "amx",
       {"avx2", "fma", "f16c", "bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vbmi",
        "avx512vbmi2", "amx_tile", "amx_bf16"}},
      {Isa::kNeon, "neon", {"neon"}},
  };
  return rows;
}

const CpuInfo& detected() {
  static const CpuInfo info{detect_model(), detect_features()};
  return info;
}

bool has_all(const std::vector<std::string_view>& needs) {
  const std::vector<std::string>& have = detected().features;
  return std::all_of(needs.begin(), needs.end(), [&](std::string_view need) {
    return std::find(have.begin(), have.end(), need) != have.end();
  });
}

}  // namespace

std::string_view isa_name(Isa isa) {
  for (const IsaRow& row : isa_rows()) {
    if (row.isa == isa) return row.name;
  }
  SLUICE_CHECK(false, std::to_string(static_cast<int>(isa)));
  return {};
}

std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  for (const IsaRow& row : isa_rows()) {
    if (has_all(row.needs)) isas.push_back(row.isa);
  }
  return isas;
}

Isa best_isa() {
  static const Isa best = available_isas().back();
  return best;
}

Isa parse_isa(std::string_view text) {
  if (text == "auto") return best_isa();
  std::string names = "auto";
  for (const IsaRow& row : isa_rows()) {
    if (row.name == text) {
      if (has_all(row.needs)) return row.isa;
      std::string available = "auto";
      for (const Isa isa : available_isas()) available.append(" ").append(isa_name(isa));
      throw Error(ErrorKind::kUsage,
                  "this CPU or operating system lacks the instruction set " + std::string(text))
          .in("--isa")
          .expected("one of: " + available)
          .found(detected().model)
          .fix("leave --isa out to use the best there is");
    }
    names.append(" ").append(row.name);
  }
  throw Error(ErrorKind::kUsage, "unknown instruction set")
      .in("--isa")
      .expected("one of: " + names)
      .found("\"" + std::string(text) + "\"")
      .fix("leave --isa out to use the best there is");
}

CpuInfo cpu_info() { return detected(); }

bool cpu_is_intel() {
  static const bool intel = detect_intel();
  return intel;
}

}  // namespace sluice
