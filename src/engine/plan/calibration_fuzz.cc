// Reads any bytes as a calibration of slices, as one of SMoE's router and as a profile: either one that is
// written as it was read, with complete contracts, or an Error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "engine/plan/calibration.h"
#include "engine/plan/options.h"
#include "engine/plan/profile.h"
#include "engine/plan/smoe_calibration.h"

namespace {

using namespace sluice;

void check_calibration(const Json& json) {
  const engine::Calibration calibration = engine::calibration_from_json(json, "data");
  const Json written = engine::to_json(calibration);
  SLUICE_CHECK(engine::to_json(engine::calibration_from_json(written, "written")) == written);
  for (const double most : {0.001, 0.05, 1.0}) {
    try {
      engine::EngineOptions options;
      engine::set_contract(calibration, most, "data", options);
      SLUICE_CHECK(options.contract && options.contract->limit >= 0);
    } catch (const Error&) {
    }
  }
}

void check_smoe(const Json& json) {
  const engine::SmoeCalibration calibration = engine::smoe_calibration_from_json(json, "data");
  const Json written = engine::to_json(calibration);
  SLUICE_CHECK(engine::to_json(engine::smoe_calibration_from_json(written, "written")) == written);
  for (const double most : {0.001, 0.05, 1.0}) {
    SLUICE_CHECK(calibration.largest_alpha(most) >= 0);
    try {
      engine::EngineOptions options;
      engine::set_contract(calibration, most, options);
      SLUICE_CHECK(options.contract && options.contract->limit >= 0);
    } catch (const Error&) {
    }
  }
}

void check_profile(const Json& json) {
  const Json written = engine::to_json(engine::profile_from_json(json, "data"));
  SLUICE_CHECK(engine::to_json(engine::profile_from_json(written, "written")) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto check : {check_calibration, check_smoe, check_profile}) {
    try {
      check(parse_json(text, "data"));
    } catch (const Error&) {
    }
  }
  return 0;
}
