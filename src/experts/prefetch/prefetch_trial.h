// Finds out whether read-ahead pays in decoding, by steps with it and steps without it in turns. Ours.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace sluice::experts {

// A step's read-ahead is over when the step is, and changes neither what is resident nor what is computed. So
// steps with and without it may be mixed as one likes, and their times can be compared: whatever read-ahead
// costs (a demand that waits behind reads in vain, a disk or a link that bills every byte, threads that check
// what nobody needs) is in them. Three things are taken out: some steps need more of the disk than others,
// which a straight line through all steps corrects; a step that something else held up counts as no more than
// a few usual ones; and the first step after a change may pay for the last one before it, and does not count.
//
// First both kinds come in turns of a few steps; then the better one, and seldom a turn of the other, so that
// a change is noticed. Read-ahead is the better one if it saves time, and the more the more it reads in vain.
// Thread-compatible.
class PrefetchTrial {
 public:
  // Whether to read ahead in the step that begins.
  bool begin_step();
  // The step that was begun took so long. `needed`: bytes that it needed from the disk, however they came;
  // `wasted`: bytes read ahead in vain. Not called if the step failed, or was not done as asked for.
  void end_step(double seconds, Bytes needed, Bytes wasted);

  bool decided() const;  // both kinds have been seen often enough
  bool pays() const;     // REQUIRES: decided()
  // Mean seconds of a step, as if both kinds had needed the same of the disk; 0 if none has been seen.
  double seconds_with() const { return mean_at_same_need(with_); }
  double seconds_without() const { return mean_at_same_need(without_); }

 private:
  // Sums over about the last kMemory steps of a kind; x: needed bytes, y: seconds.
  struct Kind {
    std::uint64_t seen = 0;
    double n = 0, x = 0, y = 0, xx = 0, xy = 0, wasted = 0;
    void add(double need, double seconds, double in_vain);
    double mean_x() const { return n > 0 ? x / n : 0; }
    double mean_y() const { return n > 0 ? y / n : 0; }
  };
  double slope() const;  // seconds a byte
  double mean_at_same_need(const Kind& kind) const;

  Kind with_, without_;
  std::uint64_t turns_ = 0, left_ = 0;  // turns begun; steps left of the running one
  bool ahead_ = true;                   // in this turn
  bool settles_ = false;                // the running step is the first of its kind, and not counted
};

}  // namespace sluice::experts
