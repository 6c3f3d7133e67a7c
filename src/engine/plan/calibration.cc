#include "engine/plan/calibration.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/setting.h"
#include "experts/registry.h"

namespace sluice::engine {
namespace {

constexpr int kCalibrationVersion = 3;  // 1: without the form of activations; 2: without `both`
constexpr double kMostLoss = 1e9;       // nats, perplexities, bytes

// The share for low precision of what high precision leaves of the limit; routing has the rest.
constexpr double kPrecisionShare = 0.5;

Json to_json(const CalibrationPoint& point) {
  Json json = {{"precision", experts::precision_name(point.precision)},
               {"amount", point.amount},
               {"cache", point.cache},
               {"perplexity", point.perplexity},
               {"loss", point.loss},
               {"error", point.error},
               {"bytes_per_token", point.bytes_per_token}};
  if (point.precision == experts::PrecisionMode::kDbsc) json["theta"] = point.theta;
  if (point.ceiling > 0) json["ceiling"] = point.ceiling;
  if (point.low > 0) json["low_share"] = point.low;
  if (point.windows > 0) json["windows"] = point.windows;
  return json;
}

CalibrationPoint point_of(const JsonObject& object) {
  CalibrationPoint point;
  const std::string precision = object.string("precision");
  if (precision != "high" && precision != "low" && precision != "dbsc")
    object.fail("precision", "high, low or dbsc");
  point.precision = experts::precision_mode(precision);
  if (point.precision == experts::PrecisionMode::kDbsc) point.theta = object.real("theta", 0, 1);
  point.ceiling = object.real_or("ceiling", 0, 0, 1);
  point.cache = object.real("cache", 0, 1);
  point.amount = object.real("amount", 0, 1);
  point.low = object.real_or("low_share", 0, 0, 1);
  point.perplexity = object.real("perplexity", 1, kMostLoss);
  point.loss = object.real("loss", -kMostLoss, kMostLoss);
  point.error = object.real("error", 0, kMostLoss);
  point.bytes_per_token = object.real("bytes_per_token", 0, 1e18);
  if (object.find("windows") != nullptr)
    point.windows = static_cast<std::uint64_t>(object.integer("windows", 2, std::int64_t{1} << 40));
  return point;
}

Json to_json(const std::vector<CalibrationPoint>& points) {
  Json array = Json::array();
  for (const CalibrationPoint& point : points) array.push_back(to_json(point));
  return array;
}

std::vector<CalibrationPoint> points_of(const JsonObject& object, std::string_view key) {
  const Json* const array = object.find(key);
  if (array == nullptr || !array->is_array()) object.fail(key, "an array of measured points");
  std::vector<CalibrationPoint> points;
  for (const Json& one : *array)
    points.push_back(point_of({one, fmt::format("{}: {}[{}]", object.name(), key, points.size())}));
  return points;
}

// Adds `errors` standard errors to each loss.
experts::LossCurve curve_of(const std::vector<CalibrationPoint>& points, double errors) {
  std::vector<experts::LossPoint> measured;
  for (const CalibrationPoint& point : points)
    measured.push_back({point.amount, point.loss + errors * point.error});
  return experts::LossCurve(std::move(measured));
}

// The loss of `both` beyond the sum of the curves, as a multiple of their product. Points outside a curve are
// ignored.
double together(const std::vector<CalibrationPoint>& both, const experts::LossCurve& precision,
                const experts::LossCurve& routing, double errors) {
  double sum = 0, squares = 0;
  for (const CalibrationPoint& point : both) {
    const double low = precision.at(point.low), routed = routing.at(point.amount);
    if (!std::isfinite(low + routed)) continue;
    sum += (point.loss + errors * point.error - low - routed) * low * routed;
    squares += low * routed * low * routed;
  }
  return squares > 0 ? std::max(0.0, sum / squares) : 0;
}

// Losses measured with one form of activations do not hold for another.
void check_activations(const Calibration& calibration, const std::string& name,
                       const EngineOptions& options) {
  const bool exact = options.math == Math::kF32 && calibration.activations != kernels::ActivationForm::kF32;
  if (!exact && options.activations.value_or(calibration.activations) == calibration.activations) return;
  throw Error(ErrorKind::kInvalid, "the losses of this store were measured with other activations")
      .in(exact ? Setting::kMath : Setting::kActivations)
      .expected(fmt::format("{}, as {} was measured", activations_name(calibration.activations), name))
      .found(exact ? "f32, which computes everything in fp32" : activations_name(*options.activations))
      .fix("leave it out, or calibrate with those activations: sluice calibrate " +
           flag(Setting::kActivations));
}

Error not_measured(const char* message, const std::string& found) {
  return Error(ErrorKind::kUsage, message)
      .in(Setting::kMaxLoss)
      .expected("neither " + Setting::kKv + " int8 nor " + Setting::kLowView + " amat-center")
      .found(found)
      .fix("leave one of the two out");
}

void check_view_measured(const EngineOptions& options) {
  if (options.low_view != codec::SliceView::kLow)
    throw not_measured("low precision was calibrated only with the view amat",
                       Setting::kLowView + " amat-center");
}

}  // namespace

void check_cache_measured(const EngineOptions& options) {
  if (options.kv == DType::kI8)
    throw not_measured("a calibration does not include the loss of an 8-bit key/value cache",
                       Setting::kKv + " int8");
}

experts::LossModel Calibration::model() const {
  experts::LossModel model{.high = std::max(0.0, high.loss),
                           .precision = curve_of(precision, 0),
                           .routing = curve_of(routing, 0),
                           .high_upper = std::max(0.0, high.loss + high.error),
                           .precision_upper = curve_of(precision, 1),
                           .routing_upper = curve_of(routing, 1)};
  model.both = together(both, model.precision, model.routing, 0);
  model.both_upper = std::max(model.both, together(both, model.precision_upper, model.routing_upper, 1));
  return model;
}

Json to_json(const Calibration& calibration) {
  return {{"version", kCalibrationVersion},
          {"text", to_json(calibration.text)},
          {"activations", activations_name(calibration.activations)},
          {"reference", {{"identity", calibration.reference}, {"perplexity", calibration.perplexity}}},
          {"high", to_json(calibration.high)},
          {"precision", to_json(calibration.precision)},
          {"routing", to_json(calibration.routing)},
          {"both", to_json(calibration.both)}};
}

Calibration calibration_from_json(const Json& json, const std::string& name) {
  const JsonObject object(json, name);
  if (object.integer("version", 0, 1 << 30) != kCalibrationVersion)
    object.fail("version", std::to_string(kCalibrationVersion));
  Calibration calibration;
  calibration.text = calibration_text_of(object.object("text"));
  const std::string activations = object.string("activations");
  if (activations != "fp32" && activations != "int8") object.fail("activations", "fp32 or int8");
  calibration.activations = parse_activations(activations);
  const JsonObject reference = object.object("reference");
  calibration.reference = reference.string("identity");
  calibration.perplexity = reference.real("perplexity", 1, kMostLoss);
  calibration.high = point_of(object.object("high"));
  calibration.precision = points_of(object, "precision");
  calibration.routing = points_of(object, "routing");
  calibration.both = points_of(object, "both");
  return calibration;
}

void set_contract(const Calibration& calibration, double most, const std::string& name,
                  EngineOptions& options) {
  const double limit = std::log1p(most);
  experts::LossContract contract{.model = calibration.model(), .limit = limit};
  const experts::LossModel& model = contract.model;
  if (model.high_upper > limit)
    throw Error(ErrorKind::kInvalid, "high precision alone already loses more than the accepted loss")
        .in(Setting::kMaxLoss)
        .expected(fmt::format("at least {:.2g} % ({}: {:.2g} % measured, and its standard error)",
                              100 * std::expm1(model.high_upper), name, 100 * std::expm1(model.high)))
        .found(fmt::format("{:.4g} %", 100 * most))
        .fix(
            "accept more, calibrate with a longer text, pack more bits, or run the model it was packed from");
  check_activations(calibration, name, options);
  check_cache_measured(options);
  check_view_measured(options);
  options.activations = calibration.activations;
  options.precision = experts::PrecisionMode::kHigh;
  const double room = kPrecisionShare * (limit - model.high_upper);
  double largest = -1;  // theta; low precision comes after all of them
  for (const CalibrationPoint& point : calibration.precision) {
    const bool low = point.precision == experts::PrecisionMode::kLow;
    const double theta = low ? 2 : point.theta;
    if (point.precision == experts::PrecisionMode::kHigh || theta <= largest) continue;
    if (model.precision_upper.at(point.amount) > room) continue;
    largest = theta;
    options.precision = point.precision;
    options.critical = {.kind = experts::CriticalRule::Kind::kSingleHead, .theta = low ? 1 : theta};
    contract.planned_low = point.amount;
  }
  const bool smoe = !options.router.empty() && options.router->rules == experts::RouterRules::kSmoe;
  if (!smoe) options.router = "cache-prior";
  options.constraint = smoe ? experts::ConstraintMode::kNone : experts::ConstraintMode::kHard;
  options.limits.limit = 0;  // as few misses as the loss allows
  options.slices.rules.lsb_miss = experts::LsbMiss::kFetch;
  options.contract = std::move(contract);
}

}  // namespace sluice::engine
