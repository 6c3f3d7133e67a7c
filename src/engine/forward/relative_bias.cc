#include "engine/forward/relative_bias.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace sluice::engine {

std::uint32_t relative_bucket(std::int64_t distance, Directions directions,
                              const model::RelativeBiasConfig& config) {
  std::uint32_t buckets = config.buckets, first = 0;
  if (directions == Directions::kBoth) {
    buckets /= 2;
    if (distance > 0) first = buckets;
    distance = std::abs(distance);
  } else {
    distance = std::max<std::int64_t>(-distance, 0);
  }
  const std::uint32_t exact = buckets / 2;
  if (distance < exact) return first + static_cast<std::uint32_t>(distance);
  // Uses fp32 where the published code does, because the result is truncated to an integer.
  const float power = std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
                      static_cast<float>(std::log(static_cast<double>(config.max_distance) / exact)) *
                      static_cast<float>(buckets - exact);
  const auto steps = static_cast<std::uint32_t>(std::min(power, static_cast<float>(buckets)));
  return first + std::min(exact + steps, buckets - 1);
}

void spread_relative_bias(const codec::MatrixRef& table, Directions directions,
                          const model::RelativeBiasConfig& config, std::size_t center, std::size_t count,
                          float* out) {
  std::vector<float> row(table.shape.columns);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t distance = static_cast<std::int64_t>(i) - static_cast<std::int64_t>(center);
    codec::row_to_float(table, relative_bucket(distance, directions, config), row.data());
    for (std::size_t h = 0; h < table.shape.columns; ++h) out[h * count + i] = row[h];
  }
}

}  // namespace sluice::engine
