// What a layer is expected to read of experts, by how often each rank is used.
#pragma once

#include <span>

namespace sluice::engine {

// A layer's experts by rank, the hottest first. `f`: the probability that a step uses it; `missing`: bytes
// that must be read then. Parallel.
struct RankedReads {
  std::span<const double> f, missing;
};

// Bytes that a step needs from the disk for one layer.
double needed_bytes(const RankedReads& layer);

// What `stream` names for one layer, all of it in bytes. It names as many experts as a step uses.
// Assumed: seven in ten of them are used then (of the bundled model 0.65 to 0.69), and a wrong one stands
// in a rank with a probability in proportion to f (1 - f): an expert that might have been used and was not.
// Where a step uses nearly the same experts every time, fewer are wrong: at most as many, f (1 - f) in
// every rank, as if experts were named as often as they are used, but without regard to the step.
struct NamedAhead {
  double right = 0, wrong = 0;
};
NamedAhead named_by_stream(const RankedReads& layer);

}  // namespace sluice::engine
