// Memory that connections and bodies share.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace sluice::serve::http {

// Thread-safe.
class Room {
 public:
  explicit Room(std::size_t bytes) : free_(bytes) {}
  bool take(std::size_t bytes) {
    std::size_t free = free_.load(std::memory_order_relaxed);
    do {
      if (free < bytes) return false;
    } while (!free_.compare_exchange_weak(free, free - bytes, std::memory_order_relaxed));
    return true;
  }
  void give(std::size_t bytes) { free_.fetch_add(bytes, std::memory_order_relaxed); }
  std::size_t free() const { return free_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::size_t> free_;
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
  void clear() { room_->give(std::exchange(bytes_, 0)); }
  std::size_t bytes() const { return bytes_; }

 private:
  Room* room_;
  std::size_t bytes_ = 0;
};

}  // namespace sluice::serve::http
