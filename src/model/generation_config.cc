// Reads generation_config.json: how the publisher wants text to be sampled, and which tokens end it.
#include <limits>

#include "model/config.h"

namespace sluice::model {
namespace {

// An absent field and null keep the value of config.json.
void override_token_ids(const JsonObject& json, std::string_view key, std::vector<tokenizer::TokenId>& ids) {
  if (!json.has(key)) return;
  const std::vector<std::int64_t> read =
      json.integers_or(key, {}, 0, std::numeric_limits<tokenizer::TokenId>::max());
  ids.assign(read.begin(), read.end());
}

double number_or(const JsonObject& json, std::string_view key, double fallback) {
  const Json* value = json.find(key);
  return value != nullptr && value->is_number() ? value->get<double>() : fallback;
}

// Ignores fields whose type differs from the type that Hugging Face gives them.
void find_ignored(const JsonObject& json, GenerationConfig& generation) {
  const auto ignore = [&](bool has_effect, const char* key) {
    if (has_effect) generation.ignored.emplace_back(key);
  };
  const bool beams = number_or(json, "num_beams", 1) > 1;
  ignore(beams, "num_beams");
  for (const char* key : {"length_penalty", "early_stopping", "num_beam_groups", "diversity_penalty"}) {
    const Json* value = json.find(key);
    const Json usual = std::string_view(key) == "early_stopping"      ? Json(false)
                       : std::string_view(key) == "diversity_penalty" ? Json(0)
                                                                      : Json(1);
    ignore(beams && value != nullptr && *value != usual, key);
  }
  for (const char* key : {"no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "min_length",
                          "min_new_tokens", "penalty_alpha"})
    ignore(number_or(json, key, 0) > 0, key);
  for (const char* key : {"encoder_repetition_penalty", "guidance_scale"})
    ignore(number_or(json, key, 1) != 1, key);
  for (const char* key : {"suppress_tokens", "begin_suppress_tokens", "bad_words_ids", "force_words_ids",
                          "sequence_bias", "stop_strings", "forced_bos_token_id", "forced_eos_token_id",
                          "forced_decoder_ids", "exponential_decay_length_penalty"}) {
    const Json* value = json.find(key);
    ignore(value != nullptr && !(value->is_structured() && value->empty()), key);
  }
  if (number_or(json, "typical_p", 1) < 1) generation.ignored_in_sampling.emplace_back("typical_p");
  for (const char* key : {"epsilon_cutoff", "eta_cutoff"})
    if (number_or(json, key, 0) > 0) generation.ignored_in_sampling.emplace_back(key);
}

}  // namespace

GenerationConfig parse_generation_config(const Json& json, const std::string& name, ModelConfig& config) {
  const JsonObject object(json, name);
  GenerationConfig generation;
  generation.says_do_sample = object.has("do_sample");
  generation.do_sample = object.boolean_or("do_sample", generation.do_sample);
  generation.temperature = object.real_or("temperature", generation.temperature, 0.0, 1e6);
  generation.says_top_k = object.has("top_k");
  generation.top_k =
      object.integer_or("top_k", generation.top_k, 0, std::numeric_limits<tokenizer::TokenId>::max());
  generation.top_p = object.real_or("top_p", generation.top_p, 0.0, 1.0);
  generation.min_p = object.real_or("min_p", generation.min_p, 0.0, 1.0);
  generation.repetition_penalty =
      object.real_or("repetition_penalty", generation.repetition_penalty, 1e-6, 1e6);
  override_token_ids(object, "bos_token_id", config.bos);
  override_token_ids(object, "eos_token_id", config.eos);
  config.decoder_start = static_cast<tokenizer::TokenId>(object.integer_or(
      "decoder_start_token_id", config.decoder_start, 0, std::numeric_limits<tokenizer::TokenId>::max()));
  find_ignored(object, generation);
  return generation;
}

}  // namespace sluice::model
