// What several JSON schemas ask for together, as one schema.
#pragma once

#include <string>
#include <string_view>

#include "engine/grammar/schema_value.h"

namespace sluice::engine {

// Neither has a $ref or allOf beside other keywords that act; what is nested in both stands in an allOf.
// Error(kInvalid) in `path`: two different patterns, or alternatives of both that are too many.
SchemaValue merge_schemas(const SchemaValue& a, const SchemaValue& b, const std::string& path);

// The same value of JSON; numbers by their value.
bool same_value(const SchemaValue& a, const SchemaValue& b);

// Keywords that say nothing of what a value may be.
bool is_annotation(std::string_view keyword);

}  // namespace sluice::engine
