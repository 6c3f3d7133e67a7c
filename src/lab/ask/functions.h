// The lab's functions, one source each. lab.cc lists them.
#pragma once

#include "lab/ask/lab.h"

namespace sluice::lab {

extern const Function kAssign;            // assign.cc
extern const Function kBalance;           // balance.cc
extern const Function kCachePrior;        // cache_prior.cc
extern const Function kConstraint;        // constraint.cc
extern const Function kCumsum;            // cumsum.cc
extern const Function kDispatch;          // dispatch.cc
extern const Function kEvict;             // evict.cc
extern const Function kPlan;              // plan.cc
extern const Function kPools;             // pools.cc
extern const Function kPrefetchPartial;   // prefetch_partial.cc
extern const Function kPrefetchResidual;  // prefetch_residual.cc
extern const Function kQuantise;          // quantise.cc
extern const Function kRank;              // rank.cc
extern const Function kRankProfile;       // rank_profile.cc
extern const Function kResidual;          // residual.cc
extern const Function kSchedule;          // schedule.cc
extern const Function kScoreWindow;       // score_window.cc
extern const Function kSliceCache;        // slice_cache.cc
extern const Function kSmoeRoute;         // smoe_route.cc
extern const Function kWarmup;            // warmup.cc
extern const Function kWorkloadCache;     // workload_cache.cc

}  // namespace sluice::lab
