#include "engine/draft/drafting.h"

namespace sluice::engine {

void Drafting::begin_step(const ExpertStatistics& so_far) {
  before_ = so_far;
  fresh_.begin_step();
}

void Drafting::end_step(const ExpertStatistics& so_far, const DraftShape& shape) {
  fresh_.end_step();
  guard_.count(shape,
               {.seconds = so_far.seconds - before_.seconds,
                .moe_s = so_far.moe_s - before_.moe_s,
                .demand_s = so_far.demand_s - before_.demand_s,
                .accesses = static_cast<double>(so_far.accesses - before_.accesses),
                .misses = static_cast<double>(so_far.misses - before_.misses)},
               fresh_.means());
}

}  // namespace sluice::engine
