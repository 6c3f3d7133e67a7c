#include "device/page_lock.h"

#include "base/error.h"

namespace sluice::device {

void CrossingBuffers::attach(PageLock& lock) {
  const std::lock_guard guard(mutex_);
  SLUICE_CHECK(lock_ == nullptr, "two devices lock pages of one accountant");
  lock_ = &lock;
  locked_ = {};
  for (auto& [data, buffer] : buffers_) lock_one(data, buffer);
}

void CrossingBuffers::detach() {
  const std::lock_guard guard(mutex_);
  if (lock_ == nullptr) return;
  for (auto& [data, buffer] : buffers_) unlock_one(data, buffer);
  lock_ = nullptr;
}

LockedPages CrossingBuffers::locked() const {
  const std::lock_guard guard(mutex_);
  return locked_;
}

void CrossingBuffers::add(std::byte* data, Bytes bytes) {
  const std::lock_guard guard(mutex_);
  const auto [at, is_new] = buffers_.try_emplace(data, Buffer{.bytes = bytes});
  SLUICE_CHECK(is_new, "a buffer is mapped twice");
  lock_one(data, at->second);
}

void CrossingBuffers::remove(std::byte* data) {
  const std::lock_guard guard(mutex_);
  const auto at = buffers_.find(data);
  if (at == buffers_.end()) return;
  unlock_one(data, at->second);
  buffers_.erase(at);
}

void CrossingBuffers::shrink(std::byte* data, Bytes bytes, FunctionRef<void()> unmap) {
  const std::lock_guard guard(mutex_);
  const auto at = buffers_.find(data);
  if (at == buffers_.end()) return unmap();
  unlock_one(data, at->second);  // a part of what was locked together cannot be unlocked
  unmap();
  at->second.bytes = bytes;
  lock_one(data, at->second);
}

void CrossingBuffers::lock_one(std::byte* data, Buffer& buffer) {
  if (lock_ == nullptr) return;
  buffer.is_locked = lock_->lock(data, buffer.bytes);
  if (buffer.is_locked) {
    locked_.bytes += buffer.bytes;
  } else {
    locked_.refused += 1;
    locked_.refused_bytes += buffer.bytes;
  }
}

void CrossingBuffers::unlock_one(std::byte* data, Buffer& buffer) {
  if (!buffer.is_locked) return;
  lock_->unlock(data);
  buffer.is_locked = false;
  locked_.bytes -= buffer.bytes;
}

}  // namespace sluice::device
