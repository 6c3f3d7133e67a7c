// A queue that keeps its memory: steady use allocates nothing.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace sluice {

// First in, first out; items can also be put back at the front. The ring grows when it is full.
// Thread-compatible. T: default constructible, movable.
template <class T>
class Fifo {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  void clear() { size_ = 0; }
  T& front() { return room_[first_]; }  // REQUIRES: !empty()
  void push_back(T item) {
    grow_if_full();
    room_[(first_ + size_++) & (room_.size() - 1)] = std::move(item);
  }
  void push_front(T item) {
    grow_if_full();
    first_ = (first_ - 1) & (room_.size() - 1);
    ++size_;
    room_[first_] = std::move(item);
  }
  void pop_front() {  // REQUIRES: !empty()
    first_ = (first_ + 1) & (room_.size() - 1);
    --size_;
  }

 private:
  void grow_if_full() {
    if (size_ < room_.size()) return;
    std::vector<T> larger(room_.empty() ? 16 : 2 * room_.size());  // a power of two
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move(room_[(first_ + i) & (room_.size() - 1)]);
    room_ = std::move(larger);
    first_ = 0;
  }

  std::vector<T> room_;
  std::size_t first_ = 0, size_ = 0;
};

}  // namespace sluice
