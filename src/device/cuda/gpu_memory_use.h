// How much of a GPU's memory all programs use together.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"

namespace sluice::device {

// Unlike CUDA it makes no context, and so takes none of that memory. Thread-safe.
class GpuMemoryUse {
 public:
  virtual ~GpuMemoryUse() = default;
  virtual std::optional<Bytes> used(const std::string& bus_id) = 0;  // none: it cannot be known
};

// Asks the driver's NVML (libnvidia-ml.so.1), which is loaded for it; null where there is none.
std::unique_ptr<GpuMemoryUse> open_nvml();

// NVML, whose functions `find` finds by name; null if one is missing, or the driver is. For tests.
using SymbolFinder = std::function<void*(const char* name)>;
std::unique_ptr<GpuMemoryUse> make_nvml(const SymbolFinder& find);

}  // namespace sluice::device
