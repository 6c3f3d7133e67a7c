// What SMoE's router costs a model of exact weights, over its alpha, as `sluice calibrate` has measured it on
// a text; and the alpha that follows when a user states the acceptable loss. Ours; docs/quality-contract.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "engine/plan/calibration_text.h"
#include "engine/plan/options.h"
#include "experts/routing/loss_guard.h"

namespace sluice::engine {

// The text computed with one alpha, and with memory for one share of all experts.
struct SmoePoint {
  double alpha = 0;
  double cache = 0;   // that share
  double amount = 0;  // score mass lost per token of a layer, as measured
  double perplexity = 0;
  double loss = 0, error = 0;  // natural logarithm of a ratio of perplexities, against the router exact
  double bytes_per_token = 0;  // expert bytes read per token of a decode step
  std::uint64_t windows = 0;   // windows of the text with which the point was measured; 0: all of them
};

struct SmoeCalibration {
  CalibrationText text;
  double perplexity = 0;  // with the router exact
  std::vector<SmoePoint> points = {};

  // By the score mass lost, over the points of every alpha and cache; all other losses are 0.
  experts::LossModel model() const;
  // The largest measured alpha that loses at most this many nats, one standard error included, with each
  // cache, as all smaller ones do; 0 where none does.
  double largest_alpha(double nats) const;
};

Json to_json(const SmoeCalibration& calibration);
// Error(kInvalid) naming `name` and field.
SmoeCalibration smoe_calibration_from_json(const Json& json, const std::string& name);

// The kind of sidecar/calibration.json in stores without slices.
inline constexpr std::string_view kSmoeCalibrationKind = "smoe-calibration";

// The loss that alpha stays within where a calibration is known, and the user says neither: a share.
inline constexpr double kUsualSmoeLoss = 0.01;

// Chooses the router smoe, its alpha and the contract so that the loss of perplexity stays within `most`, a
// share. Error(kUsage) if the options ask for anything that was not measured (a cache of 8 bits).
void set_contract(const SmoeCalibration& calibration, double most, EngineOptions& options);

}  // namespace sluice::engine
