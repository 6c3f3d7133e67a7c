// Memory that connections and bodies share.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace sluice::serve::http {

// Thread-safe.
class Room {
 public:
  // `within`: what is taken here is taken there, too; null: nowhere else.
  explicit Room(std::size_t bytes, Room* within = nullptr) : free_(bytes), within_(within) {}
  bool take(std::size_t bytes) {
    std::size_t free = free_.load(std::memory_order_relaxed);
    do {
      if (free < bytes) return false;
    } while (!free_.compare_exchange_weak(free, free - bytes, std::memory_order_relaxed));
    if (within_ == nullptr || within_->take(bytes)) return true;
    free_.fetch_add(bytes, std::memory_order_relaxed);
    return false;
  }
  void give(std::size_t bytes) {
    free_.fetch_add(bytes, std::memory_order_relaxed);
    if (within_ != nullptr) within_->give(bytes);
  }
  std::size_t free() const { return free_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::size_t> free_;
  Room* const within_;
};

// A part of a room, given back when this goes.
class RoomShare {
 public:
  explicit RoomShare(Room& room) : room_(&room) {}
  ~RoomShare() { clear(); }
  RoomShare(const RoomShare&) = delete;
  RoomShare& operator=(const RoomShare&) = delete;
  bool grow(std::size_t bytes) {
    if (!room_->take(bytes)) return false;
    bytes_ += bytes;
    return true;
  }
  // Returns false, and changes nothing, where there is no room for this many.
  bool resize(std::size_t bytes) {
    if (bytes > bytes_) return grow(bytes - bytes_);
    room_->give(bytes_ - bytes);
    bytes_ = bytes;
    return true;
  }
  void clear() { room_->give(std::exchange(bytes_, 0)); }
  std::size_t bytes() const { return bytes_; }

 private:
  Room* room_;
  std::size_t bytes_ = 0;
};

}  // namespace sluice::serve::http
