// A value of a schema as JSON text.
#pragma once

#include <string>

#include "engine/grammar/schema_value.h"

namespace sluice::engine {

// Without blanks; members in their order.
std::string schema_text(const SchemaValue& value);

}  // namespace sluice::engine
