#include "device/page_lock.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::device {

void CrossingBuffers::attach(PageLock& lock) {
  const std::lock_guard guard(mutex_);
  SLUICE_CHECK(lock_ == nullptr, "two devices lock pages of one accountant");
  lock_ = &lock;
  locked_ = {};
  for (Buffer& buffer : buffers_) lock_one(buffer);
}

void CrossingBuffers::detach() {
  const std::lock_guard guard(mutex_);
  if (lock_ == nullptr) return;
  for (Buffer& buffer : buffers_) unlock_one(buffer);
  lock_ = nullptr;
}

LockedPages CrossingBuffers::locked() const {
  const std::lock_guard guard(mutex_);
  return locked_;
}

void CrossingBuffers::add(std::byte* data, Bytes bytes) {
  const std::lock_guard guard(mutex_);
  SLUICE_CHECK(find(data) == buffers_.end(), "a buffer is mapped twice");
  buffers_.push_back({.data = data, .bytes = bytes});
  lock_one(buffers_.back());
}

void CrossingBuffers::remove(std::byte* data) {
  const std::lock_guard guard(mutex_);
  const auto at = find(data);
  if (at == buffers_.end()) return;
  unlock_one(*at);
  *at = buffers_.back();
  buffers_.pop_back();
}

void CrossingBuffers::shrink(std::byte* data, Bytes bytes, FunctionRef<void()> unmap) {
  const std::lock_guard guard(mutex_);
  const auto at = find(data);
  if (at == buffers_.end()) return unmap();
  unlock_one(*at);  // a part of what was locked together cannot be unlocked
  unmap();
  at->bytes = bytes;
  lock_one(*at);
}

CrossingBuffers::Buffers::iterator CrossingBuffers::find(std::byte* data) {
  return std::find_if(buffers_.begin(), buffers_.end(),
                      [data](const Buffer& buffer) { return buffer.data == data; });
}

void CrossingBuffers::lock_one(Buffer& buffer) {
  if (lock_ == nullptr) return;
  buffer.is_locked = lock_->lock(buffer.data, buffer.bytes);
  if (buffer.is_locked) {
    locked_.bytes += buffer.bytes;
  } else {
    locked_.refused += 1;
    locked_.refused_bytes += buffer.bytes;
  }
}

void CrossingBuffers::unlock_one(Buffer& buffer) {
  if (!buffer.is_locked) return;
  lock_->unlock(buffer.data);
  buffer.is_locked = false;
  locked_.bytes -= buffer.bytes;
}

}  // namespace sluice::device
