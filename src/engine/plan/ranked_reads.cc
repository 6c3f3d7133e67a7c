#include "engine/plan/ranked_reads.h"

#include <algorithm>
#include <numeric>

namespace sluice::engine {
namespace {

constexpr double kWrong = 0.3;

}  // namespace

double needed_bytes(const RankedReads& layer) {
  return std::inner_product(layer.f.begin(), layer.f.end(), layer.missing.begin(), 0.0);
}

NamedAhead named_by_stream(const RankedReads& layer) {
  double blind = 0, blind_bytes = 0;  // what is named wrongly without regard to the step
  for (std::size_t r = 0; r < layer.f.size(); ++r) {
    const double chance = layer.f[r] * (1 - layer.f[r]);
    blind += chance;
    blind_bytes += chance * layer.missing[r];
  }
  const double k = std::accumulate(layer.f.begin(), layer.f.end(), 0.0);
  if (blind <= 0) return {needed_bytes(layer), 0};
  const double wrong = std::min(kWrong * k, blind);
  return {(1 - wrong / k) * needed_bytes(layer), wrong * blind_bytes / blind};
}

}  // namespace sluice::engine
