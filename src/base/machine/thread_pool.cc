#include "base/machine/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/machine/cgroup.h"
#include "base/machine/soon.h"
#include "base/setting.h"

namespace sluice {
namespace {

// How long a worker spins for the next call, and the caller for the last worker, before sleeping. A wake-up
// through the kernel costs 50 microseconds on a virtual machine; a finished thread waits some 25 microseconds
// for another's last piece, and the calls of one layer follow each other within about as many.
constexpr std::chrono::microseconds kSpin{100};

// Pieces per thread: enough that one delayed thread does not delay the others, few enough to stay cheap.
constexpr std::size_t kPiecesPerThread = 4;

struct Worker {
  const void* pool = nullptr;
  unsigned number = 0;
};
thread_local Worker this_worker;  // a pointer and a number: which worker the calling thread is

// Waits at most kSpin for `ready`.
template <class Ready>
void spin_until(const Ready& ready) {
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 16; ++i) {
      if (ready()) return;
      pause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
}

}  // namespace

struct ThreadPool::Impl {
  // One call of parallel_for: pieces of `piece` indices are handed out by `next`.
  struct Job {
    Job(FunctionRef<void(std::size_t)> function, std::size_t indices, std::size_t indices_per_piece)
        : body(function), count(indices), piece(indices_per_piece) {}

    const FunctionRef<void(std::size_t)> body;
    const std::size_t count, piece;
    std::atomic<std::size_t> next{0};
    std::mutex mutex;  // protects failure
    std::exception_ptr failure = nullptr;

    void run() {
      for (;;) {
        const std::size_t begin = next.fetch_add(piece, std::memory_order_relaxed);
        if (begin >= count) return;
        const std::size_t end = std::min(count, begin + piece);
        for (std::size_t i = begin; i < end; ++i) {
          if (i > begin && next.load(std::memory_order_relaxed) >= kStop) return;
          try {
            body(i);
          } catch (...) {
            const std::lock_guard lock(mutex);
            if (!failure) failure = std::current_exception();
            next.store(kStop, std::memory_order_relaxed);  // no index starts after this
            return;
          }
        }
      }
    }
  };
  // Larger than every count, and so far below the largest number that late threads cannot wrap it round with
  // fetch_add.
  static constexpr std::size_t kStop = ~std::size_t{0} / 2;

  // `state` is the number of calls so far, whether the last one may still be joined, and the workers inside
  // it. Joining and leaving are one instruction each: locks are for those who sleep.
  static constexpr std::uint64_t kOpen = 1 << 15, kRunning = kOpen - 1, kEpoch = 1 << 16;
  static std::uint64_t epoch_of(std::uint64_t state) { return state / kEpoch; }
  alignas(64) std::atomic<std::uint64_t> state{0};
  Job* job = nullptr;  // the job of the open call; written while nothing is open or running
  // A sleeper announces itself, then looks at `state`; a thread that changes `state` looks for sleepers
  // afterwards. All four accesses are in one order (seq_cst), so one of the two threads sees the other.
  alignas(64) std::atomic<std::size_t> sleeping{0};
  std::atomic<bool> caller_sleeps{false};

  std::mutex mutex;  // protects stopping, background work, and threads that are about to sleep
  std::condition_variable wake, idle, idle_background;
  bool stopping = false;
  std::function<bool()> background;  // changes only while in_background is 0
  std::atomic<bool> has_background{false};
  std::size_t hints = 0;  // workers still to be sent to look for background work
  std::size_t in_background = 0;
  std::atomic<bool> busy{false};
  std::vector<std::thread> workers;

  bool called_since(std::uint64_t seen) const { return epoch_of(state.load()) != seen; }

  void work() {
    std::uint64_t seen = 0;
    for (;;) {
      spin_until([&] { return called_since(seen); });
      if (!called_since(seen)) {
        std::unique_lock lock(mutex);
        sleeping.fetch_add(1);
        wake.wait(lock, [&] { return stopping || called_since(seen) || hints > 0; });
        sleeping.fetch_sub(1);
        if (stopping) return;
        if (!called_since(seen)) {
          --hints;
          work_in_background(lock, seen);
          continue;
        }
      }
      if (Job* const joined = join(seen)) {
        joined->run();
        leave();
      }
      if (!has_background.load(std::memory_order_relaxed)) continue;
      std::unique_lock lock(mutex);  // background work may have arrived meanwhile
      work_in_background(lock, seen);
    }
  }

  // Joins the current call and returns its job; null if the other threads have finished it.
  Job* join(std::uint64_t& seen) {
    std::uint64_t now = state.load();
    do {
      seen = epoch_of(now);
      if ((now & kOpen) == 0) return nullptr;
    } while (!state.compare_exchange_weak(now, now + 1));
    return job;
  }

  void leave() {
    if ((state.fetch_sub(1) & kRunning) != 1 || !caller_sleeps.load()) return;
    { const std::lock_guard lock(mutex); }
    idle.notify_one();
  }

  // Does background work until there is no more or a call begins. The caller holds `lock` before and after.
  void work_in_background(std::unique_lock<std::mutex>& lock, std::uint64_t seen) {
    if (!background || stopping) return;
    ++in_background;
    lock.unlock();
    while (!called_since(seen) && background()) {
    }
    lock.lock();
    if (--in_background == 0) idle_background.notify_all();
  }

  void run(Job& call) {
    SLUICE_CHECK(!busy.exchange(true), "parallel_for does not nest");
    job = &call;
    state.store((epoch_of(state.load()) + 1) * kEpoch | kOpen);
    if (sleeping.load() != 0) {
      { const std::lock_guard lock(mutex); }
      const std::size_t pieces = (call.count + call.piece - 1) / call.piece;
      if (pieces > workers.size()) {
        wake.notify_all();
      } else {
        for (std::size_t i = 1; i < pieces; ++i) wake.notify_one();
      }
    }
    call.run();
    state.fetch_and(~kOpen);
    const auto alone = [&] { return (state.load() & kRunning) == 0; };
    spin_until(alone);
    if (!alone()) {
      std::unique_lock lock(mutex);
      caller_sleeps.store(true);
      idle.wait(lock, alone);
      caller_sleeps.store(false);
    }
    busy.store(false);
    if (call.failure) std::rethrow_exception(call.failure);
  }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    wake.notify_all();
    for (std::thread& worker : workers) worker.join();
    workers.clear();
  }
};

ThreadPool::ThreadPool(unsigned threads) : impl_(std::make_unique<Impl>()) {
  SLUICE_CHECK(threads >= 1);
  impl_->workers.reserve(threads - 1);
  try {
    for (unsigned i = 1; i < threads; ++i)
      impl_->workers.emplace_back([impl = impl_.get(), i] {
        this_worker = {impl, i};
        impl->work();
      });
  } catch (const std::system_error& e) {
    const std::size_t started = impl_->workers.size();
    impl_->stop();
    throw Error(ErrorKind::kIo, "the system refused to start a thread")
        .in(Setting::kThreads)
        .expected(std::to_string(threads) + " threads")
        .found(std::to_string(started + 1) + " (" + e.what() + ")")
        .fix("use fewer threads");
  }
}

ThreadPool::~ThreadPool() { impl_->stop(); }

unsigned ThreadPool::worker() const { return this_worker.pool == impl_.get() ? this_worker.number : 0; }

unsigned ThreadPool::threads() const { return static_cast<unsigned>(impl_->workers.size()) + 1; }

void ThreadPool::parallel_for(std::size_t count, FunctionRef<void(std::size_t)> body) {
  if (count == 0) return;
  SLUICE_CHECK(count < Impl::kStop, std::to_string(count));
  if (impl_->workers.empty() || count == 1) {
    SLUICE_CHECK(!impl_->busy.exchange(true), "parallel_for does not nest");
    struct Release {
      std::atomic<bool>& busy;
      ~Release() { busy.store(false); }
    } release{impl_->busy};
    for (std::size_t i = 0; i < count; ++i) body(i);
    return;
  }
  Impl::Job job(body, count, std::max<std::size_t>(1, count / (threads() * 4 * kPiecesPerThread)));
  impl_->run(job);
}

void ThreadPool::set_background(std::function<bool()> try_one) {
  std::unique_lock lock(impl_->mutex);
  std::function<bool()> old;
  impl_->hints = 0;
  if (impl_->background) {
    // Workers that are inside see the stop when the function finds no work; they leave soon.
    impl_->idle_background.wait(lock, [&] { return impl_->in_background == 0; });
  }
  old = std::move(impl_->background);
  impl_->background = std::move(try_one);
  impl_->has_background.store(impl_->background != nullptr);
}

void ThreadPool::wake_background(std::size_t pieces) {
  if (impl_->workers.empty() || pieces == 0) return;
  {
    const std::lock_guard lock(impl_->mutex);
    if (!impl_->background) return;
    impl_->hints = std::min(impl_->workers.size(), impl_->hints + pieces);
  }
  if (pieces == 1)
    impl_->wake.notify_one();
  else
    impl_->wake.notify_all();
}

void ThreadPool::parallel_ranges(std::size_t count, std::size_t grain,
                                 FunctionRef<void(std::size_t, std::size_t)> body) {
  SLUICE_CHECK(grain > 0);
  const std::size_t grains = count / grain + (count % grain != 0 ? 1 : 0);
  const std::size_t wanted = threads() == 1 ? 1 : threads() * kPiecesPerThread;
  const std::size_t ranges = std::min(grains, wanted);
  parallel_for(ranges, [&](std::size_t range) {
    // The first (grains mod ranges) ranges take one grain more.
    const std::size_t each = grains / ranges, more = grains % ranges;
    const std::size_t first = range * each + std::min(range, more);
    const std::size_t size = each + (range < more ? 1 : 0);
    body(first * grain, first + size == grains ? count : (first + size) * grain);
  });
}

unsigned usable_cpus() {
  unsigned cpus = std::max(1u, std::thread::hardware_concurrency());
  // On a machine with more CPUs than a cpu_set_t holds, the mask needs a larger set; the kernel answers
  // EINVAL until the set is large enough.
  for (int room = CPU_SETSIZE; room <= 1 << 20; room *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(room));
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(room));
    CPU_ZERO_S(bytes, set);
    const bool known = ::sched_getaffinity(0, bytes, set) == 0;
    if (known) cpus = static_cast<unsigned>(std::max(1, CPU_COUNT_S(bytes, set)));
    CPU_FREE(set);
    if (known) break;
  }
  if (const std::optional<unsigned> quota = cgroup_cpu_limit()) cpus = std::min(cpus, *quota);
  return cpus;
}

}  // namespace sluice
