// Memory that the host and a CUDA device both address. On a machine whose memory they share (Jetson, Grace)
// nothing is ever copied; elsewhere the driver moves pages.
#pragma once

#include <cstddef>

#include "base/bytes.h"

namespace sluice::device {

// Whether a device exists and can use unified memory.
bool unified_memory_available();

// Error(kUnsupported) without CUDA or a device, Error(kIo) if the driver refuses. Not charged to an
// accountant: for tests and benchmarks. Move-only.
class UnifiedBuffer {
 public:
  explicit UnifiedBuffer(Bytes bytes);
  UnifiedBuffer(UnifiedBuffer&& other) noexcept : data_(other.data_), size_(other.size_) {
    other.data_ = nullptr;
  }
  UnifiedBuffer& operator=(UnifiedBuffer&&) = delete;
  ~UnifiedBuffer();
  std::byte* data() const { return data_; }
  Bytes size() const { return size_; }
  void to_device() const;  // moves the pages to the device, on machines with two memories

 private:
  std::byte* data_ = nullptr;
  Bytes size_ = 0;
};

}  // namespace sluice::device
