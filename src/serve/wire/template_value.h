// Values of a body as a chat template reads them.
#pragma once

#include "serve/json/body_value.h"
#include "tokenizer/template/value.h"

namespace sluice::serve {

// Strings are the request's, so they never become control tokens; containers cannot be changed. jinja::Fault:
// more levels than templates take.
tokenizer::jinja::Value template_value(const BodyValue& value);

}  // namespace sluice::serve
