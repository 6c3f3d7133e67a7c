#include "base/machine/cpu.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/machine/cpu_features.h"
#include "base/setting.h"
#include "base/unknown_name.h"

#if defined(__x86_64__)
#include "base/machine/cpuid.h"
#endif

namespace sluice {
namespace {

#if defined(__x86_64__)

std::string detect_model() {
  if (cpuid(0x80000000u, 0).eax < 0x80000004u) return "unknown x86-64 CPU";
  std::array<char, 49> brand{};
  for (std::uint32_t i = 0; i < 3; ++i) {
    const CpuidRegisters r = cpuid(0x80000002u + i, 0);
    std::memcpy(brand.data() + i * 16, &r, 16);
  }
  std::string model(brand.data());
  const std::size_t first = model.find_first_not_of(' ');
  const std::size_t last = model.find_last_not_of(' ');
  return first == std::string::npos ? "unknown x86-64 CPU" : model.substr(first, last - first + 1);
}

bool detect_intel() {
  const CpuidRegisters r = cpuid(0, 0);
  return r.ebx == 0x756e6547 && r.edx == 0x49656e69 && r.ecx == 0x6c65746e;  // "Genu" "ineI" "ntel"
}

#else

bool detect_intel() { return false; }

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
  // Features that the compiler may use in a file of this set (cmake/SluiceFolder.cmake).
  std::vector<std::string_view> needs;
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
  static const CpuInfo info{detect_model(), detect_cpu_features()};
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
  std::vector<std::string> available = {"auto"};
  for (const Isa isa : available_isas()) available.emplace_back(isa_name(isa));
  const std::string leave_out = "leave " + Setting::kIsa + " out to use the best there is";
  const auto row = std::ranges::find(isa_rows(), text, &IsaRow::name);
  if (row == isa_rows().end())
    throw unknown_name(Setting::kIsa, text, available, "unknown instruction set", leave_out);
  if (!has_all(row->needs))
    throw unknown_name(Setting::kIsa, text, available,
                       "this CPU or operating system lacks the instruction set " + std::string(text))
        .found(detected().model)
        .fix(leave_out);
  return row->isa;
}

CpuInfo cpu_info() { return detected(); }

bool cpu_is_intel() {
  static const bool intel = detect_intel();
  return intel;
}

}  // namespace sluice
