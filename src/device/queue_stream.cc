#include "device/queue_stream.h"

#include <algorithm>
#include <utility>

#include "base/machine/soon.h"

namespace sluice::device {

std::optional<double> Arithmetic::modelled(const Operation& operation) const {
  if (!bytes_per_s || operation.weights.empty()) return std::nullopt;
  double bytes = 0;
  for (const WeightUse& use : operation.weights)
    bytes += std::max(1.0, use.tokens / kTokensFree) * static_cast<double>(use.bytes);
  return bytes / *bytes_per_s;
}

void FunctionExecutor::run(const Operation& operation, Clock::Time ready) {
  const std::lock_guard lock(arithmetic_.mutex);
  arithmetic_.pacer.run(ready, arithmetic_.modelled(operation), [&] {
    const Access access(gate_);
    operation.run(access);
  });
}

void FunctionExecutor::finish(Signal signal, const std::optional<Error>& error) {
  if (error) return signal.fail(*error);
  signal.complete();
}

QueueStream::QueueStream(Gate& gate, Arithmetic& arithmetic, Health& health)
    : QueueStream(std::make_unique<FunctionExecutor>(gate, arithmetic), arithmetic.pacer.clock(), health) {}

QueueStream::QueueStream(std::unique_ptr<Executor> executor, Clock& clock, Health& health)
    : executor_(std::move(executor)), clock_(clock), health_(health), wake_(std::make_shared<Wake>()) {
  wake_->clock = &clock;
  executor_->report_to([this](const Error& error) { set_error(error); });
  thread_ = std::thread([this] { run(); });
}

QueueStream::~QueueStream() {
  {
    const std::lock_guard lock(wake_->mutex);
    stop_ = true;
    wake_->clock = nullptr;
  }
  wake_->changed.notify_all();
  thread_.join();
  executor_.reset();  // ends what was begun; hooks of that may call this stream
}

void QueueStream::push(Item item) {
  {
    const std::lock_guard lock(wake_->mutex);
    queue_.push_back(std::move(item));
  }
  wake_->changed.notify_all();
}

void QueueStream::enqueue(Operation operation) { push(Work{std::move(operation), clock_.now()}); }

void QueueStream::wait(const Event& event) {
  auto passage = std::make_shared<Passage>();
  push(Waiting{event, passage});
  if (executor_->follows())
    event.on_queued([wake = wake_, passage](const std::shared_ptr<void>& mark) {
      {
        const std::lock_guard lock(wake->mutex);
        if (wake->clock == nullptr) return;
        passage->mark = mark;
      }
      wake->changed.notify_all();
    });
  event.on_done([wake = wake_, passage](const std::optional<Error>&) {
    {
      // Also so that the thread cannot have looked at the time and not yet gone to sleep.
      const std::lock_guard lock(wake->mutex);
      if (wake->clock == nullptr) return;
      passage->done_at = wake->clock->now();
    }
    wake->changed.notify_all();
  });
}

Event QueueStream::record() {
  Signal signal;
  Event event = signal.event();
  push(std::move(signal));
  return event;
}

void QueueStream::synchronize() {
  record().settled().wait();
  std::optional<Error> error = health_.lost();
  {
    const std::lock_guard lock(wake_->mutex);
    std::optional<Error> taken = std::exchange(error_, std::nullopt);
    if (!error) error = std::move(taken);
  }
  executor_->forget();
  if (error) throw Error(*error);
}

bool QueueStream::can_go_on() const {
  if (queue_.empty()) return false;
  const Waiting* const waiting = std::get_if<Waiting>(&queue_.front());
  return waiting == nullptr || error_ || waiting->passage->is_open() || health_.is_lost();
}

void QueueStream::sleep(std::unique_lock<std::mutex>& lock) {
  while (!stop_ && !can_go_on()) {
    if (!queue_.empty()) {
      lock.unlock();
      executor_->pause();
      lock.lock();
      if (stop_ || can_go_on()) return;
    }
    const bool was_empty = queue_.empty();
    wait_soon(lock, wake_->changed, [&] { return stop_ || can_go_on() || (was_empty && !queue_.empty()); });
  }
}

void QueueStream::run() {
  executor_->admit_this_thread();
  std::unique_lock lock(wake_->mutex);
  for (;;) {
    sleep(lock);
    if (stop_) break;
    Item item = std::move(queue_.front());
    queue_.pop_front();
    if (const Waiting* const waiting = std::get_if<Waiting>(&item))
      ready_ = std::max(ready_, waiting->passage->done_at.value_or(ready_));
    lock.unlock();
    process(item);
    lock.lock();
  }
  // Signals fail as they go, and their hooks may call this stream.
  std::deque<Item> rest = std::exchange(queue_, {});
  lock.unlock();
  rest.clear();
}

void QueueStream::process(Item& item) {
  if (Signal* const signal = std::get_if<Signal>(&item))
    return executor_->finish(std::move(*signal), error());
  if (error()) return;
  if (const Waiting* const waiting = std::get_if<Waiting>(&item)) return pass(*waiting);
  compute(std::get<Work>(item));
}

void QueueStream::pass(const Waiting& waiting) {
  std::shared_ptr<void> mark;
  {
    const std::lock_guard lock(wake_->mutex);
    if (!waiting.passage->done_at) mark = std::move(waiting.passage->mark);
    waiting.passage->mark.reset();
  }
  if (mark != nullptr) return guarded([&] { executor_->follow(mark, waiting.event); });
  if (const std::optional<Error> failed = waiting.event.error()) set_error(*failed);
}

void QueueStream::compute(Work& work) {
  guarded([&] { executor_->run(work.operation, std::max(work.ready, ready_)); });
}

void QueueStream::guarded(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    set_error(error);
  } catch (const std::exception& error) {
    set_error(Error(ErrorKind::kIo, std::string("an operation of a device failed: ") + error.what()));
  }
}

std::optional<Error> QueueStream::error() const {
  if (std::optional<Error> lost = health_.lost()) return lost;
  const std::lock_guard lock(wake_->mutex);
  return error_;
}

void QueueStream::set_error(const Error& error) {
  {
    const std::lock_guard lock(wake_->mutex);
    if (!error_) error_ = error;
  }
  wake_->changed.notify_all();  // it may sleep for an event that is now skipped
}

}  // namespace sluice::device
