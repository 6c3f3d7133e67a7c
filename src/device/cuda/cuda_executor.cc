#include "device/cuda/cuda_executor.h"

#include <utility>

#include "base/machine/soon.h"

namespace sluice::device {
CudaExecutor::CudaExecutor(CudaCalls& calls, Gate& gate, CudaBusy& busy)
    : calls_(calls), gate_(gate), busy_(busy), marks_(calls), fault_(calls), queue_(calls) {
  waiter_ = std::thread([this] { wait_for_batches(); });
}

CudaExecutor::~CudaExecutor() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  waiter_.join();
}

void CudaExecutor::run(const Operation& operation, Clock::Time) {
  if (open_.begin == nullptr) open_.begin = marks_.put(queue_.get());
  open_.operations += 1;
  {
    const Access access(gate_, {.stream = queue_.get(), .fault = fault_.on_device()});
    operation.run(access);
  }
  calls_.check(calls_.api().last_error(), "an operation could not be launched");
}

void CudaExecutor::follow(const std::shared_ptr<void>& mark, const Event& event) {
  pause();  // the queue may stand still now, which is no time of these operations
  calls_.check(calls_.api().follow(queue_.get(), mark.get()), "a queue of the GPU cannot wait for another");
  open_.after.push_back(event);
}

void CudaExecutor::finish(Signal signal, const std::optional<Error>& error) {
  Batch batch = std::exchange(open_, {});
  batch.signal = std::move(signal);
  batch.error = error;
  close(std::move(batch));
}

void CudaExecutor::pause() {
  if (open_.begin != nullptr) close(std::exchange(open_, {}));
}

void CudaExecutor::forget() {
  const std::lock_guard lock(mutex_);
  found_.reset();
}

void CudaExecutor::close(Batch batch) {
  try {
    batch.end = marks_.put(queue_.get());
  } catch (const Error& error) {
    calls_.drain(queue_.get());
    if (!batch.error) batch.error = error;
    report_(error);
  }
  {
    const std::lock_guard lock(mutex_);
    batches_.push_back(std::move(batch));
  }
  changed_.notify_all();
}

void CudaExecutor::wait_for_batches() {
  gate_.admit_this_thread();
  std::unique_lock lock(mutex_);
  for (;;) {
    wait_soon(lock, changed_, [&] { return stop_ || !batches_.empty(); });
    if (batches_.empty()) return;
    Batch batch = std::move(batches_.front());
    batches_.pop_front();
    lock.unlock();
    end(batch);
    lock.lock();
  }
}

void CudaExecutor::end(Batch& batch) {
  await(batch);
  take_errors_of(batch.after);
  if (fault_.take() != 0) found(damaged_operands());
  if (batch.begin != nullptr) marks_.give(batch.begin);
  if (batch.end != nullptr) marks_.give(batch.end);
  if (!batch.signal) return;
  if (!batch.error) {
    const std::lock_guard lock(mutex_);
    batch.error = found_;
  }
  if (batch.error) return batch.signal->fail(*batch.error);
  batch.signal->complete();
}

// The queue is behind them, so that they are done, or will be said to be in a moment.
void CudaExecutor::take_errors_of(const std::vector<Event>& after) {
  for (const Event& event : after) {
    event.settled().wait();
    if (const std::optional<Error> error = event.error()) found(*error);
  }
}

// Sleeps until the GPU has done it, and counts it.
void CudaExecutor::await(Batch& batch) {
  double seconds = 0;
  if (batch.end != nullptr) {
    if (const CudaCode code = calls_.api().await(batch.end); code != 0) {
      const Error error = calls_.error(code, "operations of the GPU failed");
      calls_.drain(queue_.get());
      return found(error);
    }
    if (batch.begin != nullptr)
      if (const CudaCode code = calls_.api().seconds(batch.begin, batch.end, seconds); code != 0)
        calls_.error(code, "the GPU does not say how long operations took");  // they are done
  }
  busy_.add(batch.operations, seconds);
}

void CudaExecutor::found(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (!found_) found_ = error;
  }
  report_(error);
}

}  // namespace sluice::device
