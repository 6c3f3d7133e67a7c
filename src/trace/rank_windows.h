// Recorded routing as input of the rank model: how often one sequence used each expert of a layer. ZipMoE
// (arXiv 2601.21198) §5.1; SPEC §1.8.
#pragma once

#include <functional>
#include <vector>

#include "experts/plan/rank_model.h"
#include "trace/routing_trace.h"

namespace sluice::trace {

// One window for each sequence and layer. Its steps are the sequence's tokens, including its prompt; each
// token uses top-k experts. A trace without sequences gives one window per layer. Errors as
// RoutingTrace::next; Error(kInterrupted) when `stop`, which is asked now and then, returns true.
std::vector<experts::RankWindow> rank_windows(RoutingTrace& trace, const std::function<bool()>& stop = {});

// f by rank, for one sequence: (N), descending, Σ = top-k. Error(kInvalid) if no sequence has 64 tokens or
// more; otherwise errors as rank_windows.
std::vector<double> recorded_ranks(RoutingTrace& trace, const std::function<bool()>& stop = {});

}  // namespace sluice::trace
