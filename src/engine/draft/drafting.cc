#include "engine/draft/drafting.h"

#include "base/error.h"

namespace sluice::engine {

void Drafting::begin_step() {
  before_ = decoded_;
  fresh_.begin_step();
}

void Drafting::end_step(const DraftShape& shape) {
  fresh_.end_step();
  guard_.count(shape,
               {.seconds = decoded_.seconds - before_.seconds,
                .moe_s = decoded_.moe_s - before_.moe_s,
                .demand_s = decoded_.demand_s - before_.demand_s,
                .accesses = static_cast<double>(decoded_.accesses - before_.accesses),
                .misses = static_cast<double>(decoded_.misses - before_.misses)},
               fresh_.means());
}

void Drafting::settle(Sequence& sequence, std::size_t drafted, std::size_t accepted) {
  SLUICE_CHECK(accepted <= drafted && drafted < sequence.length(), "more drafts than tokens");
  const std::size_t rejected = drafted - accepted;
  sequence.cut(sequence.length() - rejected);
  decoded_.tokens -= rejected;
  counts_ += {drafted, accepted, 1};
}

}  // namespace sluice::engine
