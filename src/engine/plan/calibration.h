// The losses of precision and routing of a store in slices, as `sluice calibrate` has measured them on a
// text; and the options that follow when a user states the acceptable loss. Ours; docs/quality-contract.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "engine/plan/calibration_text.h"
#include "engine/plan/options.h"
#include "experts/routing/loss_guard.h"

namespace sluice::engine {

// One way of computing the text. Losses are natural logarithms of ratios of perplexities.
struct CalibrationPoint {
  experts::PrecisionMode precision = experts::PrecisionMode::kHigh;
  double theta = 0;    // for dbsc
  double ceiling = 0;  // for routing: score mass that may be lost per token of a layer
  double cache = 0;    // share of all experts that memory had room for
  double amount = 0;   // low share, or score mass lost, as measured; for `both` the latter
  double low = 0;      // for `both`: low share
  double perplexity = 0;
  double loss = 0, error = 0;  // against high precision; `high` itself against the reference
  double bytes_per_token = 0;  // expert bytes read per token of a decode step
  std::uint64_t windows = 0;   // windows of the text with which the point was measured; 0: all of them
};

struct Calibration {
  CalibrationText text;
  kernels::ActivationForm activations = kernels::ActivationForm::kF32;  // in the store's runs
  std::string reference;       // identity of the model that was packed (model_identity.h)
  double perplexity = 0;       // the reference's
  CalibrationPoint high = {};  // its loss is against the reference
  std::vector<CalibrationPoint> precision = {}, routing = {};
  std::vector<CalibrationPoint> both = {};  // precision and routing changed together

  // The joint loss is fitted to `both` by least squares; never below 0.
  experts::LossModel model() const;
};

Json to_json(const Calibration& calibration);
// Error(kInvalid) naming `name` and field.
Calibration calibration_from_json(const Json& json, const std::string& name);

// Sets precision, theta, router, constraint (its limit 0), the rule for LSBs, the form of activations and the
// contract so that the loss of perplexity stays within `most`, a share (0.01: 1 %). Where the options name
// the router smoe, it spends what routing may lose, without a constraint, and alpha stays. Error(kInvalid)
// naming `name` if `most` is less than the loss of high precision itself, and if the options ask for other
// activations than those measured; Error(kUsage) if they ask for anything that was not measured (a cache of 8
// bits, amat-center).
void set_contract(const Calibration& calibration, double most, const std::string& name,
                  EngineOptions& options);

// Error(kUsage) naming Setting::kMaxLoss for a key/value cache with which nothing was calibrated.
void check_cache_measured(const EngineOptions& options);

}  // namespace sluice::engine
