#include "engine/plan/ranked_reads.h"

#include <algorithm>
#include <numeric>

namespace sluice::engine {
namespace {

constexpr double kRight = 0.7;

}  // namespace

double needed_bytes(const RankedReads& layer) {
  return std::inner_product(layer.f.begin(), layer.f.end(), layer.missing.begin(), 0.0);
}

NamedAhead named_by_lookahead(const RankedReads& layer) {
  double chances = 0, bytes = 0;
  for (std::size_t r = 0; r < layer.f.size(); ++r) {
    const double chance = layer.f[r] * (1 - layer.f[r]);
    chances += chance;
    bytes += chance * layer.missing[r];
  }
  const double k = std::accumulate(layer.f.begin(), layer.f.end(), 0.0);
  return {kRight * needed_bytes(layer), chances > 0 ? (1 - kRight) * k * bytes / chances : 0};
}

}  // namespace sluice::engine
