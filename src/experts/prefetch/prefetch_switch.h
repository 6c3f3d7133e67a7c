// Whether to read ahead now: a PrefetchTrial judges whole decode steps, a PrefetchGuard single events.
// Numbers go in, verdicts come out. Ours; docs/experts.md, "Read-ahead".
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "experts/core/step_kind.h"
#include "experts/prefetch/prefetch_guard.h"
#include "experts/prefetch/prefetch_trial.h"

namespace sluice::experts {

// What a run's read-ahead has done so far.
struct AheadBytes {
  Bytes used = 0;     // read ahead, and needed then
  Bytes delayed = 0;  // bytes of experts that were not needed, on their way when that was known
};

// What a step took.
struct StepCost {
  double seconds = 0;
  Bytes needed = 0;  // from the disk, however they came
  Bytes wasted = 0;  // read ahead in vain
};

enum class ReadAhead : std::uint8_t {
  kOn,
  kPaused,  // it has cost more than it saved
  kOff,     // the trial does this step without it, to compare
};

// One per run. Thread-compatible.
class PrefetchSwitch {
 public:
  // `reads_ahead`: some policy does. Otherwise no step is on trial.
  explicit PrefetchSwitch(bool reads_ahead) : reads_ahead_(reads_ahead) {}

  void begin_step(StepKind kind);
  // The step goes on after another step has run between its layers: its time tells nothing.
  void resume_step(StepKind kind);
  void end_step(const StepCost& cost);  // not called if the step failed
  // The verdict on the running event, asked once an event.
  ReadAhead at_event(const AheadBytes& so_far);
  ReadAhead verdict() const { return verdict_; }  // as last given
  // What decode steps have shown; null without read-ahead.
  const PrefetchTrial* trial() const { return reads_ahead_ ? &trial_ : nullptr; }

 private:
  bool reads_ahead_;
  PrefetchGuard guard_;
  PrefetchTrial trial_;
  AheadBytes before_;          // as of the event before
  bool on_trial_ = false;      // the running step
  bool trial_allows_ = true;   // in this step
  bool done_as_asked_ = true;  // the guard has paused nothing in this step that the trial wanted
  ReadAhead verdict_ = ReadAhead::kOn;
};

}  // namespace sluice::experts
