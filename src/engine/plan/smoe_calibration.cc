#include "engine/plan/smoe_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/setting.h"
#include "engine/plan/calibration.h"

namespace sluice::engine {
namespace {

constexpr int kSmoeVersion = 1;
constexpr double kMostSmoe = 1e9;  // alphas, nats, perplexities

Json to_json(const SmoePoint& point) {
  Json json = {{"alpha", point.alpha},
               {"cache", point.cache},
               {"amount", point.amount},
               {"perplexity", point.perplexity},
               {"loss", point.loss},
               {"error", point.error},
               {"bytes_per_token", point.bytes_per_token}};
  if (point.windows > 0) json["windows"] = point.windows;
  return json;
}

SmoePoint smoe_point_of(const JsonObject& object) {
  SmoePoint point = {.alpha = object.real("alpha", 0, kMostSmoe),
                     .cache = object.real("cache", 0, 1),
                     .amount = object.real("amount", 0, 1),
                     .perplexity = object.real("perplexity", 1, kMostSmoe),
                     .loss = object.real("loss", -kMostSmoe, kMostSmoe),
                     .error = object.real("error", 0, kMostSmoe),
                     .bytes_per_token = object.real("bytes_per_token", 0, 1e18)};
  if (object.find("windows") != nullptr)
    point.windows = static_cast<std::uint64_t>(object.integer("windows", 2, std::int64_t{1} << 40));
  return point;
}

// Adds `errors` standard errors to each loss.
experts::LossCurve curve_over_mass(const std::vector<SmoePoint>& points, double errors) {
  std::vector<experts::LossPoint> measured;
  for (const SmoePoint& point : points)
    if (point.amount > 0) measured.push_back({point.amount, point.loss + errors * point.error});
  return experts::LossCurve(std::move(measured));
}

}  // namespace

experts::LossModel SmoeCalibration::model() const {
  experts::LossModel model;
  model.routing = curve_over_mass(points, 0);
  model.routing_upper = curve_over_mass(points, 1);
  return model;
}

double SmoeCalibration::largest_alpha(double nats) const {
  double least_refused = HUGE_VAL, largest = 0;
  for (const SmoePoint& point : points)
    if (point.loss + point.error > nats) least_refused = std::min(least_refused, point.alpha);
  for (const SmoePoint& point : points)
    if (point.alpha < least_refused) largest = std::max(largest, point.alpha);
  return largest;
}

Json to_json(const SmoeCalibration& calibration) {
  Json points = Json::array();
  for (const SmoePoint& point : calibration.points) points.push_back(to_json(point));
  return {{"version", kSmoeVersion},
          {"text", to_json(calibration.text)},
          {"perplexity", calibration.perplexity},
          {"points", points}};
}

SmoeCalibration smoe_calibration_from_json(const Json& json, const std::string& name) {
  const JsonObject object(json, name);
  if (object.integer("version", 0, 1 << 30) != kSmoeVersion)
    object.fail("version", std::to_string(kSmoeVersion));
  SmoeCalibration calibration{.text = calibration_text_of(object.object("text")),
                              .perplexity = object.real("perplexity", 1, kMostSmoe)};
  const Json* const points = object.find("points");
  if (points == nullptr || !points->is_array() || points->empty())
    object.fail("points", "an array of measured points");
  for (const Json& one : *points)
    calibration.points.push_back(
        smoe_point_of({one, fmt::format("{}: points[{}]", name, calibration.points.size())}));
  return calibration;
}

void set_contract(const SmoeCalibration& calibration, double most, EngineOptions& options) {
  check_cache_measured(options);
  if (options.activations == kernels::ActivationForm::kInt8)
    throw Error(ErrorKind::kUsage,
                "a calibration of exact weights does not include the loss of int8 activations")
        .in(Setting::kMaxLoss)
        .expected(Setting::kActivations + " fp32, the default")
        .found("int8")
        .fix("leave one of the two out");
  const double limit = std::log1p(most);
  options.router = "smoe";
  options.smoe.alpha = calibration.largest_alpha(limit);
  options.routing_losses = calibration.model();
  options.contract = experts::LossContract{.model = *options.routing_losses, .limit = limit};
}

}  // namespace sluice::engine
