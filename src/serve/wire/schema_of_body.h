// A value of a request's body as a schema that answers are bound to.
#pragma once

#include <string>

#include "engine/grammar/schema_value.h"
#include "serve/json/body_value.h"

namespace sluice::serve {

engine::SchemaValue schema_value(const BodyValue& value);
// ApiError: more than 64 KiB.
engine::SchemaValue schema_of_body(const BodyValue& value, const std::string& path);

}  // namespace sluice::serve
