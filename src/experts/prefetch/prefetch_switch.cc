#include "experts/prefetch/prefetch_switch.h"

namespace sluice::experts {

void PrefetchSwitch::begin_step(StepKind kind) {
  on_trial_ = reads_ahead_ && kind == StepKind::kDecode;
  trial_allows_ = on_trial_ ? trial_.begin_step() : true;
  done_as_asked_ = true;
}

void PrefetchSwitch::resume_step(StepKind kind) {
  on_trial_ = reads_ahead_ && kind == StepKind::kDecode;
  trial_allows_ = !on_trial_ || !trial_.decided() || trial_.pays();
  done_as_asked_ = false;
}

void PrefetchSwitch::end_step(const StepCost& cost) {
  if (on_trial_ && done_as_asked_) trial_.end_step(cost.seconds, cost.needed, cost.wasted);
}

ReadAhead PrefetchSwitch::at_event(const AheadBytes& so_far) {
  if (!trial_allows_)
    return verdict_ = trial_.decided() && !trial_.pays() ? ReadAhead::kPaused : ReadAhead::kOff;
  const bool allowed = guard_.allows(static_cast<double>(so_far.used - before_.used),
                                     static_cast<double>(so_far.delayed - before_.delayed));
  before_ = so_far;
  if (!allowed) done_as_asked_ = false;
  return verdict_ = allowed ? ReadAhead::kOn : ReadAhead::kPaused;
}

}  // namespace sluice::experts
