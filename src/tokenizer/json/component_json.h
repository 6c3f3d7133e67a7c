// Builds the components of a tokenizer.json from their JSON. In every function a `value` that is null or a
// JSON null gives null; `where` names it in errors ("tokenizer.json: normalizer"). Error(kUnsupported) for a
// type or a setting that this program does not know; Error(kInvalid) for a missing or wrong field.
#pragma once

#include <memory>
#include <string>

#include "base/json/json.h"
#include "tokenizer/stages/added_tokens.h"
#include "tokenizer/stages/decoder.h"
#include "tokenizer/stages/normalizer.h"
#include "tokenizer/stages/pre_tokenizer.h"
#include "tokenizer/stages/token_template.h"
#include "tokenizer/text/pattern.h"

namespace sluice::tokenizer {

std::unique_ptr<Normalizer> read_normalizer(const Json* value, const std::string& where);
std::unique_ptr<PreTokenizer> read_pre_tokenizer(const Json* value, const std::string& where);
std::unique_ptr<Decoder> read_decoder(const Json* value, const std::string& where);
TokenTemplate read_post_processor(const Json* value, const std::string& where);

// {"String": "…"} or {"Regex": "…"}.
std::unique_ptr<Pattern> read_pattern(const JsonObject& object, std::string_view key);
// A string of exactly one character.
char32_t read_character(const JsonObject& object, std::string_view key);
// Whether Metaspace puts its replacement before a text: prepend_scheme, or add_prefix_space in older files.
PrependScheme read_prepend_scheme(const JsonObject& object);

// An entry of added_tokens, or the value of an added_tokens_decoder; the caller knows the id.
AddedToken read_added_token(const JsonObject& object);

// Error(kInvalid) if `value` holds more than 64 components: each one is a step for every piece of text.
void require_few_components(const Json* value, const std::string& where);
[[noreturn]] void throw_unsupported_type(const JsonObject& object, const std::string& type);
// JsonObject of element `i` of an array named `where`.
JsonObject element_object(const Json& array, std::size_t i, const std::string& where);

}  // namespace sluice::tokenizer
