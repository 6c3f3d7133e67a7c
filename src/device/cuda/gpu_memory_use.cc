#include <dlfcn.h>

#include "device/cuda/gpu_memory_use.h"

namespace sluice::device {
namespace {

// As nvml.h has them: its header is not needed, and its library is the driver's.
using NvmlResult = int;  // 0: it worked
struct NvmlMemory {
  unsigned long long total, free, used;
};
using NvmlDevice = void*;

class Nvml final : public GpuMemoryUse {
 public:
  explicit Nvml(const SymbolFinder& find)
      : init_(reinterpret_cast<NvmlResult (*)()>(find("nvmlInit_v2"))),
        shutdown_(reinterpret_cast<NvmlResult (*)()>(find("nvmlShutdown"))),
        by_bus_(reinterpret_cast<NvmlResult (*)(const char*, NvmlDevice*)>(
            find("nvmlDeviceGetHandleByPciBusId_v2"))),
        memory_(reinterpret_cast<NvmlResult (*)(NvmlDevice, NvmlMemory*)>(find("nvmlDeviceGetMemoryInfo"))) {
    const bool found = init_ != nullptr && shutdown_ != nullptr && by_bus_ != nullptr && memory_ != nullptr;
    works_ = found && init_() == 0;
  }
  ~Nvml() override {
    if (works_) shutdown_();
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  bool works() const { return works_; }

  std::optional<Bytes> used(const std::string& bus_id) override {
    NvmlDevice device = nullptr;
    NvmlMemory memory{};
    if (by_bus_(bus_id.c_str(), &device) != 0 || memory_(device, &memory) != 0) return std::nullopt;
    return memory.used;
  }

 private:
  NvmlResult (*init_)();
  NvmlResult (*shutdown_)();
  NvmlResult (*by_bus_)(const char*, NvmlDevice*);
  NvmlResult (*memory_)(NvmlDevice, NvmlMemory*);
  bool works_ = false;
};

}  // namespace

std::unique_ptr<GpuMemoryUse> make_nvml(const SymbolFinder& find) {
  auto nvml = std::make_unique<Nvml>(find);
  if (!nvml->works()) return nullptr;
  return nvml;
}

std::unique_ptr<GpuMemoryUse> open_nvml() {
  // Stays loaded: its threads may run code of it for as long as the process lives.
  void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  return make_nvml([library](const char* name) { return ::dlsym(library, name); });
}

}  // namespace sluice::device
