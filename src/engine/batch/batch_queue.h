// Requests that wait for their admission, in the order in which they came.
#pragma once

#include <cstddef>
#include <deque>

#include "engine/batch/running_sequence.h"

namespace sluice::engine {

// Thread-compatible.
class BatchQueue {
 public:
  void add(QueuedRequest request) { waiting_.push_back(std::move(request)); }
  bool empty() const { return waiting_.empty(); }
  std::size_t size() const { return waiting_.size(); }
  const BatchRequest& first() const { return waiting_.front().request; }
  QueuedRequest take_first();
  bool cancel(RequestId id);  // false: it is not here
  void end_cancelled(BatchTime now);
  void fail_first(const Error& error, BatchTime now);

 private:
  static void end(const QueuedRequest& request, BatchEnd end, BatchTime now);

  std::deque<QueuedRequest> waiting_;
};

}  // namespace sluice::engine
