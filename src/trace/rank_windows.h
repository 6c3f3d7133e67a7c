// Recorded routing as the rank model takes it: how often each expert of a layer was used by one sequence.
// ZipMoE (arXiv 2601.21198) §5.1; SPEC §1.8.
#pragma once

#include <functional>
#include <vector>

#include "experts/rank_model.h"
#include "trace/routing_trace.h"

namespace sluice::trace {

// One window for each sequence and layer; its steps are the sequence's tokens, those of its prompt too, each
// of which uses top-k experts. A trace that does not know its sequences is one window a layer. Errors as
// RoutingTrace::next; Error(kInterrupted) when `stop`, asked now and then, says so.
std::vector<experts::RankWindow> rank_windows(RoutingTrace& trace, const std::function<bool()>& stop = {});

// f by rank, for one sequence: (N), descending, Σ = top-k. Error(kInvalid) if no sequence has 64 tokens or
// more; as rank_windows.
std::vector<double> recorded_ranks(RoutingTrace& trace, const std::function<bool()>& stop = {});

}  // namespace sluice::trace
