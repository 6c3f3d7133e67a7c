// Detects what the CPU and the operating system offer. This is a file of its own because tests with emulated
// instructions replace it (tests/emulation).
#pragma once

#include <string>
#include <vector>

namespace sluice {

// Names for CpuInfo::features.
std::vector<std::string> detect_cpu_features();

}  // namespace sluice
