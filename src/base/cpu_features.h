// What the CPU and the operating system offer. A file of its own, which tests with emulated instructions
// replace (tests/emulation).
#pragma once

#include <string>
#include <vector>

namespace sluice {

// CpuInfo::features.
std::vector<std::string> detect_cpu_features();

}  // namespace sluice
