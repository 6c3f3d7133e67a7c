// What precision and routing cost a store in slices, as `sluice calibrate` has measured it on a text; and
// what to choose where a user says how much he accepts. Ours; docs/quality-contract.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/options.h"
#include "experts/loss_guard.h"

namespace sluice::engine {

// One way of computing the text. Losses are natural logarithms of ratios of perplexities.
struct CalibrationPoint {
  experts::PrecisionMode precision = experts::PrecisionMode::kHigh;
  double theta = 0;    // of dbsc
  double ceiling = 0;  // of routing: score mass that might be lost, a token of a layer
  double cache = 0;    // share of all experts that memory had room for
  double amount = 0;   // low share, or score mass lost, as it came out; of `both` the latter
  double low = 0;      // of `both`: low share
  double perplexity = 0;
  double loss = 0, error = 0;  // of all points but `high` against high precision
  double bytes_per_token = 0;  // read for experts, of a decode step
};

struct Calibration {
  std::string text_sha256;  // of the token ids, as little-endian 32-bit numbers
  std::uint64_t tokens = 0, scored = 0, windows = 0;
  std::uint64_t window = 0, prompt = 0;                                 // tokens
  kernels::ActivationForm activations = kernels::ActivationForm::kF32;  // of the store's runs
  std::string reference;       // identity of the model it was packed from (model_identity.h)
  double perplexity = 0;       // of the reference
  CalibrationPoint high = {};  // its loss is against the reference
  std::vector<CalibrationPoint> precision = {}, routing = {};
  std::vector<CalibrationPoint> both = {};  // precision and routing changed together

  // What both lose together is fitted to `both`, by least squares; never below 0.
  experts::LossModel model() const;
};

Json to_json(const Calibration& calibration);
// Error(kInvalid) naming `name` and field.
Calibration calibration_from_json(const Json& json, const std::string& name);

// Sets precision, theta, router, constraint (its limit 0), the rule for LSBs, the form of activations and the
// contract so that the loss of perplexity stays at `most`, a share (0.01: 1 %). Error(kInvalid) naming `name`
// where that is less than high precision itself loses, and where the options ask for other activations than
// those it was measured with; Error(kUsage) where they ask for what none was measured with (a cache of 8
// bits, amat-center).
void set_contract(const Calibration& calibration, double most, const std::string& name,
                  EngineOptions& options);

}  // namespace sluice::engine
