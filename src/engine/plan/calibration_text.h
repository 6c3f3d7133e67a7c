// The text with which a calibration was measured: which it was, and how it was cut.
#pragma once

#include <cstdint>
#include <string>

#include "base/json/json.h"

namespace sluice::engine {

struct CalibrationText {
  std::string sha256;  // SHA-256 of the token ids as little-endian 32-bit numbers
  std::uint64_t tokens = 0, scored = 0, windows = 0;
  std::uint64_t window = 0, prompt = 0;  // tokens
};

Json to_json(const CalibrationText& text);
// Error(kInvalid) naming the object and the field.
CalibrationText calibration_text_of(const JsonObject& text);

}  // namespace sluice::engine
