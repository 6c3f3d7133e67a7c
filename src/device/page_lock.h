// Host memory that a device copies from and to by itself: its pages must stay where they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/bytes.h"
#include "base/function_ref.h"

namespace sluice::device {

// Locks pages for a device. Thread-safe.
class PageLock {
 public:
  virtual ~PageLock() = default;
  virtual bool lock(std::byte* data, Bytes bytes) = 0;  // whole pages; false: refused
  virtual void unlock(std::byte* data) = 0;             // as they were locked
};

struct LockedPages {
  Bytes bytes = 0;            // locked now
  std::uint64_t refused = 0;  // buffers that could not be locked, since the device came …
  Bytes refused_bytes = 0;    // … and what they had: copies from there are slower
};

// The buffers of an accountant that may cross a link (HostBuffer says which). While a device is attached
// that wants their pages locked they are, those that were there before, too. Thread-safe.
class CrossingBuffers {
 public:
  void attach(PageLock& lock);  // must outlive detach(); there is one at a time
  void detach();                // unlocks all; nothing if none is attached
  LockedPages locked() const;

 private:
  friend class HostBuffer;
  friend class BufferPool;

  struct Buffer {
    std::byte* data;
    Bytes bytes;  // whole pages
    bool is_locked = false;
  };
  void add(std::byte* data, Bytes bytes);  // was mapped
  void remove(std::byte* data);            // will be unmapped; nothing if it was not added
  // `unmap` unmaps the pages behind the first `bytes`.
  void shrink(std::byte* data, Bytes bytes, FunctionRef<void()> unmap);
  using Buffers = std::vector<Buffer>;
  Buffers::iterator find(std::byte* data);  // the end if it was not added
  void lock_one(Buffer& buffer);
  void unlock_one(Buffer& buffer);

  mutable std::mutex mutex_;  // protects all below; held while pages are locked, and unlocked
  Buffers buffers_;           // in no order; allocates nothing when as many are mapped as there were before
  PageLock* lock_ = nullptr;
  LockedPages locked_;
};

}  // namespace sluice::device
