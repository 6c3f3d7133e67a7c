#include "engine/plan/calibration_text.h"

namespace sluice::engine {

Json to_json(const CalibrationText& text) {
  return {{"sha256", text.sha256},   {"tokens", text.tokens}, {"scored", text.scored},
          {"windows", text.windows}, {"window", text.window}, {"prompt", text.prompt}};
}

CalibrationText calibration_text_of(const JsonObject& text) {
  const auto number = [&](const char* key, std::int64_t least) {
    return static_cast<std::uint64_t>(text.integer(key, least, std::int64_t{1} << 40));
  };
  return {.sha256 = text.string("sha256"),
          .tokens = number("tokens", 2),
          .scored = number("scored", 1),
          .windows = number("windows", 2),
          .window = number("window", 3),
          .prompt = number("prompt", 1)};
}

}  // namespace sluice::engine
