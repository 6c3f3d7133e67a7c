// Objects that are made with CUDA and must be dropped.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "device/cuda/cuda_calls.h"

namespace sluice::device {

// A queue of the GPU's work. What is queued is over before it goes. Not copied.
class OwnedQueue {
 public:
  explicit OwnedQueue(CudaCalls& calls) : calls_(calls) {
    calls.check(calls.api().make_queue(queue_), "a queue of the GPU cannot be made");
  }
  ~OwnedQueue() {
    calls_.use();
    calls_.drain(queue_);
    calls_.api().drop_queue(queue_);
  }
  OwnedQueue(const OwnedQueue&) = delete;
  OwnedQueue& operator=(const OwnedQueue&) = delete;
  CudaQueue get() const { return queue_; }

 private:
  CudaCalls& calls_;
  CudaQueue queue_ = nullptr;
};

// Marks for use again and again. They must be given back. Thread-safe.
class MarkPool {
 public:
  explicit MarkPool(CudaCalls& calls) : calls_(calls) {}
  ~MarkPool() {
    calls_.use();
    for (const CudaMark mark : all_) calls_.api().drop_mark(mark);
  }
  MarkPool(const MarkPool&) = delete;
  MarkPool& operator=(const MarkPool&) = delete;
  CudaMark take() {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      const CudaMark mark = free_.back();
      free_.pop_back();
      return mark;
    }
    CudaMark mark = nullptr;
    calls_.check(calls_.api().make_mark(mark), "an event of the GPU cannot be made");
    all_.push_back(mark);
    return mark;
  }
  // A mark, put behind what is queued. Throws, and takes none, if CUDA refuses.
  CudaMark put(CudaQueue queue) {
    const CudaMark mark = take();
    const CudaCode code = calls_.api().put(mark, queue);
    if (code == 0) return mark;
    give(mark);
    throw calls_.error(code, "an event of the GPU cannot be recorded");
  }
  // The same; it is given back when the last copy of the pointer goes. This must outlive all copies.
  std::shared_ptr<void> put_shared(CudaQueue queue) {
    return std::shared_ptr<void>(put(queue), [this](CudaMark mark) { give(mark); });
  }
  void give(CudaMark mark) {
    const std::lock_guard lock(mutex_);
    free_.push_back(mark);
  }

 private:
  CudaCalls& calls_;
  std::mutex mutex_;  // protects all below
  std::vector<CudaMark> all_, free_;
};

// A number that kernels and the host reach, 0 at first.
class MappedWord {
 public:
  explicit MappedWord(CudaCalls& calls) : calls_(calls) {
    void* host = nullptr;
    void* device = nullptr;
    calls.check(calls.api().allocate_mapped(sizeof(std::uint32_t), host, device),
                "memory that the GPU and the host reach cannot be had");
    on_host_ = static_cast<std::uint32_t*>(host);
    on_device_ = static_cast<std::uint32_t*>(device);
  }
  ~MappedWord() {
    calls_.use();
    calls_.api().free_mapped(on_host_);
  }
  MappedWord(const MappedWord&) = delete;
  MappedWord& operator=(const MappedWord&) = delete;
  std::uint32_t* on_device() const { return on_device_; }
  std::uint32_t take() const { return std::atomic_ref(*on_host_).exchange(0); }

 private:
  CudaCalls& calls_;
  std::uint32_t* on_host_ = nullptr;
  std::uint32_t* on_device_ = nullptr;
};

}  // namespace sluice::device
