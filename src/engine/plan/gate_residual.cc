#include "engine/plan/gate_residual.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json/json.h"
#include "base/setting.h"

namespace sluice::engine {
namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 48;

using Member = std::pair<const char*, WindowMean PredictionQuality::*>;
constexpr Member kMembers[] = {
    {"accuracy_raw", &PredictionQuality::raw},
    {"accuracy_residual", &PredictionQuality::residual},
    {"accuracy_stream", &PredictionQuality::stream},
    {"cosine_raw", &PredictionQuality::cosine_raw},
    {"cosine_residual", &PredictionQuality::cosine_residual},
    {"residual_above_raw", &PredictionQuality::above_raw},
    {"residual_above_stream", &PredictionQuality::above_stream},
};

Json to_json(const WindowMean& value) {
  return {{"mean", value.mean}, {"error", std::isfinite(value.error) ? Json(value.error) : Json()}};
}

PredictionQuality quality_from_json(const Json& json, const std::string& name) {
  const JsonObject object(json, name);
  PredictionQuality quality;
  for (const auto& [key, member] : kMembers) {
    const JsonObject value = object.object(key);
    WindowMean& mean = quality.*member;
    mean.mean = value.real("mean", -1.0001, 1.0001);  // cosines may be rounded beyond 1
    mean.error = value.has("error") ? value.real("error", 0, 2) : std::numeric_limits<double>::infinity();
  }
  return quality;
}

Error foreign(const std::string& name, const std::string& expected, const std::string& found) {
  return Error(ErrorKind::kInvalid, "this residual was measured with another model")
      .in(name)
      .expected(expected)
      .found(found)
      .fix("measure it with this model: sluice calibrate MODEL " + flag(Setting::kResidual) + " " +
           flag(Setting::kFile) + " TEXT");
}

}  // namespace

Json to_json(const PredictionQuality& quality) {
  Json json;
  for (const auto& [key, member] : kMembers) json[key] = to_json(quality.*member);
  return json;
}

ResidualTables::ResidualTables(const GateResidual& residual) {
  Json layers = Json::array();
  for (const PredictionQuality& layer : residual.layers) layers.push_back(to_json(layer));
  description_ = Json{{"identity", hex64(residual.identity)},
                      {"text_sha256", residual.text_sha256},
                      {"tokens", residual.tokens},
                      {"averaged", residual.averaged},
                      {"window", residual.window},
                      {"windows", residual.windows},
                      {"layers", residual.vectors.layers},
                      {"width", residual.vectors.width},
                      {"all", to_json(residual.all)},
                      {"each", std::move(layers)}}
                     .dump();
  tables_ = {store::named_table("description", std::span<const char>(description_)),
             store::named_table("vectors", std::span(residual.vectors.values))};
}

std::string ResidualTables::file() const { return store::write_tables(kResidualTables, 0, tables_); }

GateResidual read_residual(const store::TableSidecar& tables) {
  tables.check_kind(kResidualTables);
  const std::string name = tables.name() + ": description";
  const Json json = parse_json(tables.read_text("description"), name, {});
  const JsonObject object(json, name);
  GateResidual residual;
  const std::string identity = object.string("identity");
  if (!parse_hex64(identity, residual.identity)) object.fail("identity", "16 hexadecimal digits");
  residual.text_sha256 = object.string("text_sha256");
  const auto number = [&](std::string_view key, std::int64_t least, std::int64_t most) {
    return static_cast<std::uint64_t>(object.integer(key, least, most));
  };
  residual.tokens = number("tokens", 0, kMostTokens);
  residual.averaged = number("averaged", 0, kMostTokens);
  residual.window = number("window", 0, kMostTokens);
  residual.windows = number("windows", 0, kMostTokens);
  residual.vectors.layers = number("layers", 2, 65536);
  residual.vectors.width = number("width", 1, 1 << 20);
  const Json* const all = object.find("all");
  const Json* const each = object.find("each");
  if (all == nullptr) object.fail("all", "qualities over all layers");
  if (each == nullptr || !each->is_array() || each->size() + 1 != residual.vectors.layers)
    object.fail("each", fmt::format("qualities of {} layers", residual.vectors.layers - 1));
  residual.all = quality_from_json(*all, name + ": all");
  for (const Json& layer : *each) residual.layers.push_back(quality_from_json(layer, name + ": each"));
  residual.vectors.values = tables.read<float>("vectors");
  const std::size_t expected = (residual.vectors.layers - 1) * residual.vectors.width;
  if (residual.vectors.values.size() != expected)
    throw Error(ErrorKind::kInvalid, "the vectors of a residual do not have the shape that is stated")
        .in(tables.name())
        .expected(fmt::format("{} floats", expected))
        .found(fmt::format("{}", residual.vectors.values.size()));
  for (const float value : residual.vectors.values)
    if (!std::isfinite(value))
      throw Error(ErrorKind::kInvalid, "a residual holds a number that is not finite").in(tables.name());
  return residual;
}

void check_residual(const GateResidual& residual, const ResidualShape& model, const std::string& name) {
  const experts::ResidualVectors& vectors = residual.vectors;
  if (vectors.layers != model.layers || vectors.width != model.width)
    throw foreign(name, fmt::format("{} sparse layers of width {}", model.layers, model.width),
                  fmt::format("{} of {}", vectors.layers, vectors.width));
  if (residual.identity != model.identity)
    throw foreign(name, "the model's identity " + hex64(model.identity), hex64(residual.identity));
}

}  // namespace sluice::engine
