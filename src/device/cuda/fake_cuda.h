// A GPU that this program plays, call by call, for tests of what stands on CudaApi: memory of the host, and
// a thread for each queue. Any call can be made to fail.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "device/access.h"
#include "device/cuda/cuda_api.h"

namespace sluice::device::testing {

// A queue of the fake: a thread that does one job after the other.
class FakeQueue {
 public:
  FakeQueue() : thread_([this] { run(); }) {}
  ~FakeQueue() {
    push({}, true);
    thread_.join();
  }
  FakeQueue(const FakeQueue&) = delete;
  FakeQueue& operator=(const FakeQueue&) = delete;
  void push(std::function<void()> job, bool last = false) {
    const std::lock_guard lock(mutex_);
    jobs_.emplace_back(std::move(job), last);
    changed_.notify_all();
  }

 private:
  void run() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !jobs_.empty(); });
      const auto [job, last] = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      if (job) job();
      if (last) return;
    }
  }

  std::mutex mutex_;  // protects all below
  std::condition_variable changed_;
  std::deque<std::pair<std::function<void()>, bool>> jobs_;
  std::thread thread_;
};

// Thread-safe. Calls that act on a GPU must come from threads that use it: our own bug if they do not.
class FakeCuda final : public CudaApi {
 public:
  static constexpr CudaCode kInvalidValue = 1, kDied = 700, kNoGpu = 100, kNoContext = 201,
                            kAlreadyLocked = 712;

  explicit FakeCuda(Bytes memory = 64 * kMiB, int gpus = 1) : memory_(memory), gpus_(gpus) {}

  // The `nth` call of this entry point from now on, counted from 0, gives `code`. With `dies` every call
  // behind it does, too, and what is queued is dropped.
  void fail(std::string_view entry, int nth, CudaCode code, bool dies = false) {
    const std::lock_guard lock(mutex_);
    planned_ = Planned{std::string(entry), nth, code, dies};
  }
  // What a kernel does when it breaks the GPU: the error is found by later calls.
  void die() {
    const std::lock_guard lock(mutex_);
    dead_ = kDied;
  }
  void share_memory(bool shares) {
    const std::lock_guard lock(mutex_);
    shares_memory_ = shares;
  }
  void refuse_locks(bool refuse) {
    const std::lock_guard lock(mutex_);
    refuse_locks_ = refuse;
  }
  // Copies do not move before this is taken back.
  void hold_copies(bool hold) {
    const std::lock_guard lock(mutex_);
    holds_copies_ = hold;
    changed_.notify_all();
  }
  // "a kernel": runs when the queue comes to it. For operations; REQUIRES: the access of a stream of a fake
  static void launch(const Access& access, std::function<void()> kernel) {
    static_cast<FakeQueue*>(access.queue().stream)->push(std::move(kernel));
  }

  // Calls of each entry point so far.
  std::map<std::string, int> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  Bytes locked() const {
    const std::lock_guard lock(mutex_);
    Bytes bytes = 0;
    for (const auto& [data, size] : locked_) bytes += size;
    return bytes;
  }
  std::map<void*, Bytes> locked_ranges() const {
    const std::lock_guard lock(mutex_);
    return locked_;
  }
  // What was made and not dropped, in words; empty if there is nothing.
  std::string left() const {
    const std::lock_guard lock(mutex_);
    std::string text;
    const auto say = [&](const char* what, std::size_t count) {
      if (count > 0) text += std::to_string(count) + ' ' + what + ' ';
    };
    say("allocations", allocations_.size());
    say("locks", locked_.size());
    say("mapped", mapped_.size());
    say("queues", queues_.size());
    say("marks", marks_.size());
    return text;
  }
  std::size_t most_copies_under_way() const {
    const std::lock_guard lock(mutex_);
    return most_copies_;
  }

  std::string text(CudaCode code) override { return "fake error " + std::to_string(code); }
  CudaCode versions(int& runtime, int& driver) override {
    runtime = 13000;
    driver = 12080;
    return enter("versions", false);
  }
  CudaCode count(int& gpus) override {
    gpus = gpus_;
    return enter("count", false);
  }
  CudaCode properties(int, CudaProperties& properties) override {
    const std::lock_guard lock(mutex_);
    properties = {.name = "Fake GPU",
                  .bus_id = "0000:3B:00.0",
                  .compute_major = 9,
                  .compute_minor = 0,
                  .multiprocessors = 132,
                  .copy_engines = 3,
                  .memory = memory_,
                  .shares_memory = shares_memory_};
    return enter_locked("properties", false);
  }
  CudaCode has_context(int, bool& there) override {
    const std::lock_guard lock(mutex_);
    there = has_context_;
    return enter_locked("has_context", false);
  }
  CudaCode use(int index) override {
    const std::lock_guard lock(mutex_);
    if (index < 0 || index >= gpus_) return kNoGpu;
    if (const CudaCode code = enter_locked("use", false); code != 0) {
      use_has_failed_ = true;
      return code;
    }
    user() = this;
    has_context_ = true;
    return 0;
  }
  CudaCode memory(Bytes& free, Bytes& total) override {
    const std::lock_guard lock(mutex_);
    total = memory_;
    free = memory_ - used_locked();
    return enter_locked("memory");
  }
  CudaCode last_error() override { return enter("last_error", false); }

  CudaCode allocate(Bytes bytes, void*& data) override {
    const std::lock_guard lock(mutex_);
    if (const CudaCode code = enter_locked("allocate"); code != 0) return code;
    if (bytes > memory_ - used_locked()) return kCudaOutOfMemory;
    auto block = std::make_unique_for_overwrite<std::byte[]>(bytes + 256);
    data = reinterpret_cast<void*>(round_up(reinterpret_cast<std::uintptr_t>(block.get()), 256));
    allocations_[data] = {std::move(block), bytes};
    return 0;
  }
  CudaCode free(void* data) override {
    const std::lock_guard lock(mutex_);
    SLUICE_CHECK(allocations_.erase(data) == 1);
    return enter_locked("free");
  }
  CudaCode lock(void* data, Bytes bytes, CudaLock lock_for) override {
    const std::lock_guard lock(mutex_);
    if (const CudaCode code = enter_locked("lock"); code != 0) return code;
    if (refuse_locks_) return kCudaOutOfMemory;
    const auto after = locked_.lower_bound(data);
    if (after != locked_.end() && after->first < static_cast<std::byte*>(data) + bytes) return kAlreadyLocked;
    if (after != locked_.begin()) {
      const auto& [before, size] = *std::prev(after);
      if (static_cast<std::byte*>(before) + size > data) return kAlreadyLocked;
    }
    locked_[data] = bytes;
    if (lock_for == CudaLock::kKernels) locked_for_kernels_.insert(data);
    return 0;
  }
  CudaCode unlock(void* data) override {
    const std::lock_guard lock(mutex_);
    SLUICE_CHECK(locked_.erase(data) == 1);
    locked_for_kernels_.erase(data);
    return enter_locked("unlock");
  }
  CudaCode mapped_at(void* data, void*& on_device) override {
    const std::lock_guard lock(mutex_);
    if (const CudaCode code = enter_locked("mapped_at"); code != 0) return code;
    if (!locked_for_kernels_.contains(data)) return kInvalidValue;
    on_device = data;
    return 0;
  }
  CudaCode allocate_mapped(Bytes bytes, void*& on_host, void*& on_device) override {
    const std::lock_guard lock(mutex_);
    if (const CudaCode code = enter_locked("allocate_mapped"); code != 0) return code;
    auto block = std::make_unique<std::byte[]>(bytes);
    on_host = on_device = block.get();
    mapped_[on_host] = std::move(block);
    return 0;
  }
  CudaCode free_mapped(void* on_host) override {
    const std::lock_guard lock(mutex_);
    SLUICE_CHECK(mapped_.erase(on_host) == 1);
    return enter_locked("free_mapped");
  }

  CudaCode make_queue(CudaQueue& queue) override {
    const std::lock_guard lock(mutex_);
    if (const CudaCode code = enter_locked("make_queue"); code != 0) return code;
    auto made = std::make_unique<FakeQueue>();
    queue = made.get();
    queues_[queue] = std::move(made);
    return 0;
  }
  CudaCode drop_queue(CudaQueue queue) override {
    std::unique_ptr<FakeQueue> dropped;
    CudaCode code = 0;
    {
      const std::lock_guard lock(mutex_);
      code = enter_locked("drop_queue");
      dropped = std::move(queues_.at(queue));
      queues_.erase(queue);
    }
    return code;  // its thread ends first, without our lock
  }
  CudaCode drain(CudaQueue queue) override {
    if (const CudaCode code = enter("drain"); code != 0) return code;
    bool is_empty = false;
    push(queue, [&] { is_empty = true; });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_empty; });
    return dead_;
  }

  CudaCode make_mark(CudaMark& mark) override {
    const std::lock_guard lock(mutex_);
    if (const CudaCode code = enter_locked("make_mark"); code != 0) return code;
    auto made = std::make_unique<Mark>();
    mark = made.get();
    marks_[mark] = std::move(made);
    return 0;
  }
  CudaCode drop_mark(CudaMark mark) override {
    const std::lock_guard lock(mutex_);
    SLUICE_CHECK(marks_.at(mark)->pending == 0, "a mark is dropped that a queue will come to");
    SLUICE_CHECK(marks_.at(mark)->followers == 0, "a mark is dropped that a queue waits for");
    marks_.erase(mark);
    return enter_locked("drop_mark");
  }
  CudaCode put(CudaMark mark, CudaQueue queue) override {
    Mark* put = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (const CudaCode code = enter_locked("put"); code != 0) return code;
      put = marks_.at(mark).get();
      put->pending += 1;
      put->put += 1;
    }
    push(queue, [put] {
      put->pending -= 1;
      put->times_reached += 1;
      put->reached = std::chrono::steady_clock::now();
    });
    return 0;
  }
  CudaCode await(CudaMark mark) override {
    std::unique_lock lock(mutex_);
    if (const CudaCode code = enter_locked("await"); code != 0) return code;
    const Mark& awaited = *marks_.at(mark);
    changed_.wait(lock, [&] { return awaited.pending == 0; });
    return dead_;
  }
  CudaCode follow(CudaQueue queue, CudaMark mark) override {
    const std::lock_guard lock(mutex_);
    if (const CudaCode code = enter_locked("follow"); code != 0) return code;
    Mark* const followed = marks_.at(mark).get();
    followed->followers += 1;
    static_cast<FakeQueue*>(queue)->push([this, followed, times = followed->put] {
      std::unique_lock waiting(mutex_);
      changed_.wait(waiting, [&] { return followed->times_reached >= times; });
      followed->followers -= 1;
    });
    return 0;
  }
  CudaCode seconds(CudaMark from, CudaMark to, double& seconds) override {
    const std::lock_guard lock(mutex_);
    const Mark &first = *marks_.at(from), &second = *marks_.at(to);
    SLUICE_CHECK(first.pending == 0 && second.pending == 0);
    seconds = std::chrono::duration<double>(second.reached - first.reached).count();
    return enter_locked("seconds");
  }
  CudaCode copy(void* to, const void* from, Bytes bytes, CudaWay way, CudaQueue queue) override {
    {
      const std::lock_guard lock(mutex_);
      if (const CudaCode code = enter_locked("copy"); code != 0) return code;
      SLUICE_CHECK(is_ours(way == CudaWay::kToDevice ? to : from, bytes), "a copy leaves the GPU's memory");
      most_copies_ = std::max(most_copies_, ++copies_);
    }
    // With the lock: once a call has said that the GPU is dead, nothing moves any more.
    static_cast<FakeQueue*>(queue)->push([this, to, from, bytes] {
      std::unique_lock waiting(mutex_);
      changed_.wait(waiting, [&] { return !holds_copies_; });
      if (dead_ == 0) std::memcpy(to, from, bytes);
      --copies_;
      changed_.notify_all();
    });
    return 0;
  }

 private:
  struct Mark {
    int pending = 0;  // queues will come to it so often
    int put = 0, times_reached = 0, followers = 0;
    std::chrono::steady_clock::time_point reached;
  };
  struct Planned {
    std::string entry;
    int nth;
    CudaCode code;
    bool dies;
  };

  // The fake that this thread uses.
  static const FakeCuda*& user() {
    thread_local const FakeCuda* used = nullptr;
    return used;
  }

  CudaCode enter(const char* entry, bool needs_user = true) {
    const std::lock_guard lock(mutex_);
    return enter_locked(entry, needs_user);
  }
  CudaCode enter_locked(const char* entry, bool needs_user = true) {
    ++calls_[entry];
    if (dead_ != 0) return dead_;
    if (needs_user && user() != this) {
      SLUICE_CHECK(use_has_failed_, std::string(entry) + " on a thread that uses no GPU");
      return kNoContext;
    }
    if (!planned_ || planned_->entry != entry || planned_->nth-- > 0) return 0;
    const CudaCode code = planned_->code;
    if (planned_->dies) dead_ = code;
    planned_.reset();
    return code;
  }
  Bytes used_locked() const {
    Bytes used = 0;
    for (const auto& [data, block] : allocations_) used += block.second;
    return used;
  }
  bool is_ours(const void* data, Bytes bytes) const {
    const auto lies_in = [&](const void* range, Bytes size) {
      const auto* const begin = static_cast<const std::byte*>(range);
      const auto* const first = static_cast<const std::byte*>(data);
      return first >= begin && first + bytes <= begin + size;
    };
    return std::ranges::any_of(allocations_,
                               [&](const auto& one) { return lies_in(one.first, one.second.second); }) ||
           std::ranges::any_of(locked_for_kernels_,
                               [&](void* pages) { return lies_in(pages, locked_.at(pages)); });
  }
  // A job that changes what others wait for.
  void push(CudaQueue queue, std::function<void()> job) {
    static_cast<FakeQueue*>(queue)->push([this, job = std::move(job)] {
      const std::lock_guard lock(mutex_);
      job();
      changed_.notify_all();
    });
  }

  const Bytes memory_;
  const int gpus_;
  mutable std::mutex mutex_;  // protects all below
  std::condition_variable changed_;
  std::map<std::string, int> calls_;
  std::optional<Planned> planned_;
  CudaCode dead_ = 0;
  bool holds_copies_ = false, refuse_locks_ = false, shares_memory_ = false;
  bool has_context_ = false, use_has_failed_ = false;
  std::size_t copies_ = 0, most_copies_ = 0;
  std::map<void*, std::pair<std::unique_ptr<std::byte[]>, Bytes>> allocations_;
  std::map<void*, Bytes> locked_;
  std::set<void*> locked_for_kernels_;  // some of these
  std::map<void*, std::unique_ptr<std::byte[]>> mapped_;
  std::map<CudaMark, std::unique_ptr<Mark>> marks_;
  std::map<CudaQueue, std::unique_ptr<FakeQueue>> queues_;
};

}  // namespace sluice::device::testing
