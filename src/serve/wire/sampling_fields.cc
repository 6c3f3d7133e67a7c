#include "serve/wire/sampling_fields.h"

#include <sys/random.h>

#include <cstdint>

#include "serve/wire/token_fields.h"

namespace sluice::serve {
namespace {

constexpr std::size_t kMostBiases = 1024, kMostStops = 16, kMostStopBytes = 256;
constexpr std::int64_t kMostTopK = std::int64_t{1} << 31;

void read_bias(const Fields& body, const Served& served, Sampling& sampling) {
  const std::optional<Fields> bias = body.object("logit_bias");
  if (!bias) return;
  const BodyValue::Object& members = bias->value().object();
  if (members.size() > kMostBiases)
    body.wrong_value("logit_bias", "an object of at most " + std::to_string(kMostBiases) + " members");
  for (const auto& [key, value] : members) {
    const tokenizer::TokenId id = read_token_key(key, "logit_bias", served);
    if (const std::optional<double> by = bias->number(key, -100, 100))
      sampling.logit_bias.emplace_back(id, *by);
  }
}

}  // namespace

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  while (getrandom(&seed, sizeof(seed), 0) != static_cast<ssize_t>(sizeof(seed))) {
  }
  return seed;
}

Sampling read_sampling(const Fields& body, const Served& served) {
  Sampling sampling = served.defaults.sampling;
  sampling.temperature = body.number("temperature", 0, 2).value_or(sampling.temperature);
  sampling.top_p = body.number_above("top_p", 0, 1).value_or(sampling.top_p);
  sampling.min_p = body.number("min_p", 0, 1).value_or(sampling.min_p);
  sampling.top_k = body.integer("top_k", -1, kMostTopK).value_or(sampling.top_k);
  if (sampling.top_k < 0) sampling.top_k = 0;
  if (sampling.temperature == 0 && !served.defaults.penalties_by_user) {
    sampling.repetition_penalty = 1;
    sampling.presence_penalty = sampling.frequency_penalty = 0;
  }
  std::optional<double> repetition = body.number_above("repetition_penalty", 0, 10);
  if (const auto other = body.number_above("repeat_penalty", 0, 10); !repetition) repetition = other;
  sampling.repetition_penalty = repetition.value_or(sampling.repetition_penalty);
  sampling.presence_penalty = body.number("presence_penalty", -2, 2).value_or(sampling.presence_penalty);
  sampling.frequency_penalty = body.number("frequency_penalty", -2, 2).value_or(sampling.frequency_penalty);
  read_bias(body, served, sampling);
  const std::optional<std::int64_t> seed = body.integer("seed", INT64_MIN, INT64_MAX);
  sampling.seed = seed ? static_cast<std::uint64_t>(*seed) : random_seed();
  sampling.ignore_eos = body.boolean("ignore_eos").value_or(sampling.ignore_eos);
  return sampling;
}

std::vector<std::string> read_stops(const Fields& body, std::string_view name) {
  const BodyValue* value = body.find(name);
  std::vector<std::string> stops;
  if (value == nullptr) return stops;
  const auto add = [&](const BodyValue& stop, const std::string& path) {
    if (stop.is_null()) return;
    if (!stop.is_string()) refuse_type(path, "a string", stop);
    if (stop.string().size() > kMostStopBytes)
      refuse_value(path, "a string of at most " + std::to_string(kMostStopBytes) + " bytes", stop);
    if (!stop.string().empty()) stops.push_back(stop.string());
  };
  if (value->is_string()) {
    add(*value, body.path(name));
  } else if (value->is_array()) {
    const BodyValue::Array& elements = value->array();
    for (std::size_t i = 0; i < elements.size(); ++i) add(elements[i], element_path(body.path(name), i));
  } else {
    body.wrong_type(name, "a string or an array of strings");
  }
  if (stops.size() > kMostStops) body.wrong_value(name, "at most " + std::to_string(kMostStops) + " strings");
  return stops;
}

}  // namespace sluice::serve
