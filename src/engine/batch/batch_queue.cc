#include "engine/batch/batch_queue.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace sluice::engine {

QueuedRequest BatchQueue::take_first() {
  QueuedRequest first = std::move(waiting_.front());
  waiting_.pop_front();
  return first;
}

bool BatchQueue::cancel(RequestId id) {
  const auto found = std::ranges::find(waiting_, id, &QueuedRequest::id);
  if (found == waiting_.end()) return false;
  found->cancelled = true;
  return true;
}

void BatchQueue::end_cancelled(BatchTime now) {
  std::erase_if(waiting_, [&](const QueuedRequest& request) {
    if (request.cancelled) end(request, {.reason = StopReason::kInterrupted}, now);
    return request.cancelled;
  });
}

void BatchQueue::fail_first(const Error& error, BatchTime now) { end(take_first(), {.error = error}, now); }

void BatchQueue::end(const QueuedRequest& request, BatchEnd end, BatchTime now) {
  end.statistics.prompt = request.request.prompt.size();
  end.statistics.queue_ms = std::chrono::duration<double, std::milli>(now - request.submitted).count();
  request.client->on_end(end);
}

}  // namespace sluice::engine
