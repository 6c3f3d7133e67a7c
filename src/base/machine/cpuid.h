// The instruction CPUID. Include it on x86 only.
#pragma once

#include <cpuid.h>

#include <cstdint>

namespace sluice {

struct CpuidRegisters {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// Zeros where the CPU has no such leaf.
inline CpuidRegisters cpuid(std::uint32_t leaf, std::uint32_t subleaf) {
  CpuidRegisters r;
  __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

}  // namespace sluice
