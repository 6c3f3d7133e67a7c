// generation_config.json: how the publisher wants text to be sampled, and which tokens end it.
#include <limits>

#include "model/config.h"

namespace sluice::model {
namespace {

// Absent and null leave what config.json said.
void override_token_ids(const JsonObject& json, std::string_view key, std::vector<TokenId>& ids) {
  if (!json.has(key)) return;
  const std::vector<std::int64_t> read = json.integers_or(key, {}, 0, std::numeric_limits<TokenId>::max());
  ids.assign(read.begin(), read.end());
}

}  // namespace

GenerationConfig parse_generation_config(const Json& json, const std::string& name, ModelConfig& config) {
  const JsonObject object(json, name);
  GenerationConfig generation;
  generation.do_sample = object.boolean_or("do_sample", generation.do_sample);
  generation.temperature = object.real_or("temperature", generation.temperature, 0.0, 1e6);
  generation.top_k = object.integer_or("top_k", generation.top_k, 0, std::numeric_limits<TokenId>::max());
  generation.top_p = object.real_or("top_p", generation.top_p, 0.0, 1.0);
  generation.min_p = object.real_or("min_p", generation.min_p, 0.0, 1.0);
  generation.repetition_penalty =
      object.real_or("repetition_penalty", generation.repetition_penalty, 1e-6, 1e6);
  override_token_ids(object, "bos_token_id", config.bos);
  override_token_ids(object, "eos_token_id", config.eos);
  config.decoder_start = static_cast<TokenId>(object.integer_or(
      "decoder_start_token_id", config.decoder_start, 0, std::numeric_limits<TokenId>::max()));
  return generation;
}

}  // namespace sluice::model
