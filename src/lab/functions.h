// The lab's functions, one source each. lab.cc lists them.
#pragma once

#include "lab/lab.h"

namespace sluice::lab {

extern const Function kDispatch;     // dispatch.cc
extern const Function kEvict;        // evict.cc
extern const Function kPlan;         // plan.cc
extern const Function kPools;        // pools.cc
extern const Function kQuantise;     // quantise.cc
extern const Function kRank;         // rank.cc
extern const Function kRankProfile;  // rank_profile.cc
extern const Function kSchedule;     // schedule.cc

}  // namespace sluice::lab
