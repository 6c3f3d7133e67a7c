// Makes a lane, a link's direction or the arithmetic of a unit, take the time that a model gives it.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

#include "base/function_ref.h"
#include "device/clock.h"

namespace sluice::device {

// What a lane has done so far.
struct LaneCounters {
  std::uint64_t pieces = 0;    // operations, or chunks of copies
  double busy_s = 0;           // modelled seconds of paced pieces, real ones of the others
  std::uint64_t overruns = 0;  // paced pieces whose real time exceeded the modelled one …
  double overrun_s = 0;        // … and by how much
};

// Pieces of a lane follow each other on a modelled clock: each begins when it was ready and its predecessor
// is over, and takes its modelled time. The pacer does the piece for real and then sleeps until the modelled
// end. It does not sleep for less than kLeastWait; what is owed stays owed, and so does what a late wake-up
// has cost. A piece that really takes longer than modelled is an overrun: then the lane is slower than its
// model, and what is timed with it is not valid.
//
// run() and account() are thread-compatible, counters() is thread-safe.
class Pacer {
 public:
  // A wake-up costs 50 µs on a virtual machine.
  static constexpr std::chrono::microseconds kLeastWait{300};

  explicit Pacer(Clock& clock) : clock_(clock) {}

  Clock& clock() const { return clock_; }
  // Does `work`, which was ready at `ready`. `modelled`: seconds that it is to take; none: the real ones.
  // Rethrows what `work` throws, without sleeping.
  void run(Clock::Time ready, std::optional<double> modelled, FunctionRef<void()> work);
  // Accounts for a piece that is over, and really took `real` seconds; then sleeps as run() does.
  void account(Clock::Time ready, std::optional<double> modelled, double real);
  Clock::Time end() const { return end_; }  // modelled, of the last piece; thread-compatible, as run()
  LaneCounters counters() const;

 private:
  Clock& clock_;
  Clock::Time end_{0};        // modelled, of the last piece
  mutable std::mutex mutex_;  // protects counters_
  LaneCounters counters_;
};

}  // namespace sluice::device
