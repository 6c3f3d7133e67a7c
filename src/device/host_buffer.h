// Page-aligned host memory, charged to the accountant for as long as it exists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "device/accountant.h"

namespace sluice::device {

// Anonymous pages, zero at first. Move-only. Charged for its size rounded up to whole pages; Error(kBudget)
// if the budget refuses, Error(kIo) if the system does. The accountant must outlive it. Zero bytes make an
// empty buffer.
class HostBuffer {
 public:
  HostBuffer() = default;
  HostBuffer(Accountant& accountant, Account account, Bytes bytes);
  HostBuffer(HostBuffer&& other) noexcept;
  HostBuffer& operator=(HostBuffer&& other) noexcept;
  ~HostBuffer();

  std::byte* data() const { return data_; }
  Bytes size() const { return size_; }  // the size that was asked for
  Bytes charged() const { return charged_; }
  explicit operator bool() const { return data_ != nullptr; }
  std::span<std::byte> span() const { return {data_, size_}; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  void release();  // unmaps the pages and gives the charge back; the buffer is empty afterwards
  void charge_to(Account account);  // moves the charge

 private:
  friend class BufferPool;  // hands a buffer out again under another size()
  Accountant* accountant_ = nullptr;
  Account account_ = Account::kStaging;
  std::byte* data_ = nullptr;
  Bytes size_ = 0, charged_ = 0;
};

// Keeps buffers of a few sizes for reuse, so that a steady state neither maps nor faults pages. Free buffers
// stay charged. Taking a size of which no buffer is free first gives back free buffers of other sizes until
// the new one fits under `limit`. A buffer taken from the pool must be given back to the pool, never only
// destroyed. A buffer's content is whatever its last user left. Thread-compatible.
class BufferPool {
 public:
  BufferPool(Accountant& accountant, Account account, Bytes limit);
  HostBuffer take(Bytes bytes);  // Error(kBudget) if in-use buffers leave no room under limit
  bool can_take(Bytes bytes) const;
  bool has_free(Bytes bytes) const;  // take() of this many bytes would map nothing
  void give(HostBuffer buffer);      // accepts a buffer that was charged to another account meanwhile
  // Cuts a buffer in use down to its first `bytes`; the pages behind them go back to the system.
  void shrink(HostBuffer& buffer, Bytes bytes);
  void trim();  // gives every free buffer back to the system
  Bytes in_use() const { return in_use_; }
  Bytes free_bytes() const { return free_; }
  Bytes limit() const { return limit_; }
  std::uint64_t maps() const { return maps_; }  // buffers mapped so far: constant in a steady state

 private:
  Accountant* accountant_;
  Account account_;
  Bytes limit_, in_use_ = 0, free_ = 0;
  std::uint64_t maps_ = 0;
  std::vector<HostBuffer> free_buffers_;  // ascending in charged size
};

}  // namespace sluice::device
