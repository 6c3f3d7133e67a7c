#include "engine/session/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice::engine {
namespace {

// The dimension at which a full circle takes `rotations` of the original context.
double correction_dim(const model::RopeConfig& config, double rotations) {
  return config.dims * std::log(config.original_max_positions / (rotations * 2.0 * std::numbers::pi)) /
         (2.0 * std::log(config.theta));
}

double attention_factor(const model::RopeConfig& config) {
  if (config.scaling != model::RopeScaling::kYarn) return 1.0;
  if (config.attention_factor) return *config.attention_factor;
  if (config.mscale != 0.0 && config.mscale_all_dim != 0.0)
    return yarn_mscale(config.factor, config.mscale) / yarn_mscale(config.factor, config.mscale_all_dim);
  return yarn_mscale(config.factor, 1.0);
}

}  // namespace

double yarn_mscale(double factor, double mscale) {
  return factor <= 1.0 || mscale == 0.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

RopeTable::RopeTable(const model::RopeConfig& config) : attention_factor_(engine::attention_factor(config)) {
  const std::size_t half = config.dims / 2;
  double low = 0.0, high = 0.0;
  if (config.scaling == model::RopeScaling::kYarn) {
    low = correction_dim(config, config.beta_fast);
    high = correction_dim(config, config.beta_slow);
    if (config.truncate) low = std::floor(low), high = std::ceil(high);
    low = std::max(low, 0.0);
    high = std::min(high, config.dims - 1.0);
    if (low == high) high += 0.001;  // avoids division by zero, as published
  }
  for (std::size_t i = 0; i < half; ++i) {
    // Uses fp32 where the published code does, so that angles of far positions agree.
    const float power = static_cast<float>(
        std::pow(config.theta, static_cast<float>(2 * i) / static_cast<float>(config.dims)));
    float inverse = 1.0f / power;
    if (config.scaling == model::RopeScaling::kLinear) inverse /= static_cast<float>(config.factor);
    if (config.scaling == model::RopeScaling::kYarn) {
      const float interpolated = 1.0f / (static_cast<float>(config.factor) * power);
      const float ramp =
          static_cast<float>(std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0));
      inverse = interpolated * ramp + inverse * (1.0f - ramp);
    }
    inverse_frequencies_.push_back(inverse);
  }
}

void RopeTable::angles(std::size_t position, float* cos, float* sin) const {
  for (std::size_t i = 0; i < half(); ++i) {
    const float angle = static_cast<float>(position) * inverse_frequencies_[i];
    cos[i] = static_cast<float>(std::cos(static_cast<double>(angle)) * attention_factor_);
    sin[i] = static_cast<float>(std::sin(static_cast<double>(angle)) * attention_factor_);
  }
}

}  // namespace sluice::engine
