// How reports state one number by another.
#pragma once

#include <cmath>

namespace sluice::app {

inline double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

// A loss in nats a token, as the share by which perplexity grows.
inline double as_share(double nats) { return std::expm1(nats); }

}  // namespace sluice::app
