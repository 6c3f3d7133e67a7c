// What it means when a run read, or took, far more or less than was predicted, and what to do.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "engine/read_forecast.h"

namespace sluice::engine {
struct GenerateResult;
struct RunReport;
}  // namespace sluice::engine

namespace sluice::app {

// What decoding took.
struct Decoded {
  std::size_t tokens = 0;
  double bytes_per_token = 0;  // useful and wasted
  double wasted_per_token = 0;
  double read_s_per_token = 0;  // during which a demanded read was under way
  double tok_s = 0;             // 0: not known
  Bytes cache = 0;              // that experts may fill
  std::string_view model;       // as the user named it
  bool packed = false;          // so that it keeps a profile of its own
};
Decoded decoded_of(const engine::RunReport& run, const std::vector<engine::GenerateResult>& results);

// Where a figure is more than twice what was predicted, or less than half of it: a sentence that says what
// this means and what to do. Else empty. What was read in vain counts only if the difference is a quarter of
// all bytes.
std::string bytes_hint(const engine::ReadForecast& forecast, const Decoded& decoded);
std::string waste_hint(const engine::ReadForecast& forecast, const Decoded& decoded);
std::string speed_hint(const engine::ReadForecast& forecast, const Decoded& decoded);

}  // namespace sluice::app
