// The requests of a server on their way to the engine's thread, and where each of them stands.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>
#include <vector>

#include "serve/backend.h"

namespace sluice::serve {

struct NewRequest {
  RequestId id = 0;
  std::vector<TextRequest> sequences;
  std::shared_ptr<EventQueue> events;
};

// What the engine's thread finds on the desk, in this order.
struct DeskMessages {
  std::vector<NewRequest> submitted = {};
  std::vector<RequestId> cancelled = {};
  bool drain = false, stop = false;  // stay true
};

// What it says of the requests that it knows.
struct DeskReport {
  std::vector<SlotState> slots = {};
  std::vector<RequestId> waiting = {};  // in their order
  std::size_t free_places = 0;          // for sequences
  unsigned next_end_s = 1;              // when a sequence is expected to end
};

// Thread-safe.
class RequestDesk {
 public:
  explicit RequestDesk(std::size_t queue) : queue_(queue) {}

  // Empty: the queue is full.
  std::optional<RequestId> submit(std::vector<TextRequest> sequences, std::shared_ptr<EventQueue> events);
  void cancel(RequestId id);
  void drain();
  void stop();

  // For the engine's thread. Waits until there is something, if `wait`, but no longer than `most`.
  DeskMessages take(bool wait, std::chrono::milliseconds most);
  void report(DeskReport report);

  std::optional<QueuePlace> place_of(RequestId id) const;
  std::vector<SlotState> slots() const;
  unsigned retry_after_s() const;

 private:
  const std::size_t queue_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  RequestId next_ = 1;
  DeskMessages messages_;
  DeskReport report_;
};

}  // namespace sluice::serve
