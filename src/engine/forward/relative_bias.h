// T5's relative position bias (arXiv 1910.10683 §2.1), as its published code computes it. SPEC §9.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/matrix_format.h"
#include "model/config.h"

namespace sluice::engine {

enum class Directions { kBack, kBoth };  // a decoder sees earlier positions only, an encoder both ways

// Bucket of a distance (key's position less query's): half of the buckets of a direction hold one distance
// each, the others grow by a constant factor up to max_distance, and the last one holds all larger distances.
// kBack: later positions count as 0.
std::uint32_t relative_bucket(std::int64_t distance, Directions directions,
                              const model::RelativeBiasConfig& config);

// Spreads `table` (buckets, heads) out by distance: out (heads, count), row h, distance d at d + center, 0 <=
// d + center < count.
void spread_relative_bias(const codec::MatrixRef& table, Directions directions,
                          const model::RelativeBiasConfig& config, std::size_t center, std::size_t count,
                          float* out);

}  // namespace sluice::engine
