#include "device/cuda/cuda_api.h"

namespace sluice::device {

CudaApi* cuda_api() { return nullptr; }

}  // namespace sluice::device
