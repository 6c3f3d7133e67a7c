// Messages of Anthropic's API, which are made of blocks, as messages that chat templates know.
#pragma once

#include "serve/json/body_value.h"
#include "serve/wire/fields.h"

namespace sluice::serve {

// `system` and `messages` together. ApiError naming the field: images, documents, unknown blocks.
BodyValue conversation_of_blocks(const Fields& body, bool keep_billing_header);

}  // namespace sluice::serve
