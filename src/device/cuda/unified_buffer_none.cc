#include "base/error.h"
#include "device/cuda/unified_buffer.h"

namespace sluice::device {

bool unified_memory_available() { return false; }

UnifiedBuffer::UnifiedBuffer(Bytes) {
  throw Error(ErrorKind::kUnsupported, "this program was built without CUDA")
      .fix("configure with -DSLUICE_CUDA=ON");
}
UnifiedBuffer::~UnifiedBuffer() = default;
void UnifiedBuffer::to_device() const {}

}  // namespace sluice::device
