// Operations of a unit, one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/bytes.h"
#include "device/access.h"
#include "device/event.h"

namespace sluice::device {

// A product with weights, as models of time see it: how many bytes of weights, for how many tokens.
struct WeightUse {
  Bytes bytes = 0;
  std::uint32_t tokens = 1;
};

// Runs on a thread of the device. What it captures must outlive it: until an event recorded behind it is
// done, or the stream was synchronised. May throw Error.
struct Operation {
  std::function<void(const Access&)> run;
  // The products in it, by which an emulated device knows how long it is to take; none: as long as it takes.
  std::vector<WeightUse> weights = {};
};

// In order: each operation begins when the one before is over. After an error the operations behind it are
// skipped, and events recorded behind it carry it, until synchronize() has thrown it. Thread-safe.
class Stream {
 public:
  virtual ~Stream() = default;  // drops what has not begun: its events carry Error(kInterrupted)
  virtual void enqueue(Operation operation) = 0;
  // What is enqueued after this begins when `event` is done. If the event carries an error, so does the
  // stream.
  virtual void wait(const Event& event) = 0;
  // Is done when all that was enqueued before is over.
  virtual Event record() = 0;
  // Sleeps until all that was enqueued before is over; throws the first error since the last call. After
  // that, the stream goes on. Error(kIo) for ever once the device is lost.
  virtual void synchronize() = 0;
};

}  // namespace sluice::device
