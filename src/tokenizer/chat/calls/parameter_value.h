// The value of a parameter that a model wrote as text, as JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json/json_value.h"

namespace sluice::tokenizer {

// `tool`: the JSON schema of the tool's parameters; null: unknown. `is_string`: what the model itself
// said of the value. By the schema's types, a string stays the text that it is; else text that is JSON is
// taken as it is, and what is none is a string. Where a string is one type of several, JSON of the others
// alone is taken. True, False and None are Python's words where the schema has such a type.
std::string parameter_json(std::string_view text, const Json* tool, const std::string& name,
                           std::optional<bool> is_string);

}  // namespace sluice::tokenizer
